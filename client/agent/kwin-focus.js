// SPDX-License-Identifier: MIT
// Runs inside KWin, loaded and unloaded by vramd-agent, which puts "const agent" with its name on the bus before it.
// Names of Plasma 6 first, of 5.27 second.

const activated = workspace.windowActivated || workspace.clientActivated;

function tell(window) {
    callDBus(agent, "/io/github/vramd1/kwin", "io.github.vramd1.KWin", "Activated", Boolean(window),
             window ? window.pid : 0, window ? String(window.resourceClass) : "");
}

activated.connect(tell);
tell(workspace.activeWindow || workspace.activeClient);
