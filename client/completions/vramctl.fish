# SPDX-License-Identifier: MIT
# fish completion for vramctl(1)

set -l verbs status games top watch run hold focus tune reload doctor dump
set -l none "not __fish_seen_subcommand_from $verbs"
set -l reads "not __fish_seen_subcommand_from run hold focus reload dump"

complete -c vramctl -f
complete -c vramctl -n $none -a status -d 'Regions, who is in front and why, games'
complete -c vramctl -n $none -a games -d 'Each game in detail'
complete -c vramctl -n $none -a top -d 'Live view'
complete -c vramctl -n $none -a watch -d 'Decisions as they come'
complete -c vramctl -n $none -a run -d 'Start a game in its own scope, and protect it'
complete -c vramctl -n $none -a hold -d "Protect a process's unit until Ctrl-C"
complete -c vramctl -n $none -a focus -d 'Say which game is in front'
complete -c vramctl -n $none -a tune -d 'Show and set parameters of the kernel'
complete -c vramctl -n $none -a reload -d 'Read the configuration again'
complete -c vramctl -n $none -a doctor -d 'What stands in the way, and what to do'
complete -c vramctl -n $none -a dump -d "vramd's state as text"

complete -c vramctl -l no-color -d 'No colours, even on a terminal'
complete -c vramctl -s h -l help -d 'Show help'
complete -c vramctl -l version -d 'Show the version'
complete -c vramctl -n $reads -s j -l json -d 'Print JSON'

complete -c vramctl -n '__fish_seen_subcommand_from top' -x -s n -l frames -d 'End after so many frames'
complete -c vramctl -n '__fish_seen_subcommand_from top' -x -s d -l delay -d 'Between two frames'

complete -c vramctl -n '__fish_seen_subcommand_from run' -x -l scope-name -d 'Name of the scope'
complete -c vramctl -n '__fish_seen_subcommand_from run' -x -l slice -a 'app.slice background.slice session.slice' -d 'Where the scope goes'
complete -c vramctl -n '__fish_seen_subcommand_from run' -l make-room -d 'First move others out'
complete -c vramctl -n '__fish_seen_subcommand_from run' -l no-scope -d 'Stay in the present control group'
complete -c vramctl -n '__fish_seen_subcommand_from run' -l require -d 'Do not run it without scope and hold'
complete -c vramctl -n '__fish_seen_subcommand_from run' -x -a '(__fish_complete_subcommand)'

complete -c vramctl -n '__fish_seen_subcommand_from hold' -x -l who -d 'Who holds'
complete -c vramctl -n '__fish_seen_subcommand_from hold' -x -l why -d 'For which reason'
complete -c vramctl -n '__fish_seen_subcommand_from hold' -x -l for -d 'End after that'

complete -c vramctl -n '__fish_seen_subcommand_from focus' -x -l appid -d "The game's Steam appid"
complete -c vramctl -n '__fish_seen_subcommand_from focus' -x -l menu -a 'open closed unknown' -d "Steam's menu"
complete -c vramctl -n '__fish_seen_subcommand_from focus' -x -l compositor -a '(__fish_complete_pids)' -d 'The process that shows it'
complete -c vramctl -n '__fish_seen_subcommand_from focus' -l persist -d 'Return at once'
complete -c vramctl -n '__fish_seen_subcommand_from focus' -l clear -d 'Take back what was reported'
complete -c vramctl -n '__fish_seen_subcommand_from hold focus' -x -a '(__fish_complete_pids)'

complete -c vramctl -n '__fish_seen_subcommand_from tune' -l reset -d 'What the configuration says counts again'
complete -c vramctl -n '__fish_seen_subcommand_from tune' -x -a 'ThrottleHard= ThrottleSoft= ThrottleLevels= ReclaimBackoff= ContigWindow= EvictPriority= DisplaceLower= GfxoffDelay='

complete -c vramctl -n '__fish_seen_subcommand_from doctor' -x -l root -a '(__fish_complete_directories)' -d 'Look at other proc and sys trees'
