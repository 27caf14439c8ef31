# SPDX-License-Identifier: MIT
"""Programs under test start with the signals of a login shell, whoever started the tests: below nohup, or in
the background of a script, SIGHUP, SIGINT and SIGQUIT are ignored, and stay so in every child."""

import signal


def reset():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


reset()
