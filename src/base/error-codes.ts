/** A kind of error with one cause and one remedy: whole sentences, with Markdown's backquotes around what is typed. */
interface ErrorKind {
  /** The symptom, in the words of a person who searches for it. */
  title: string
  cause: string
  remedy: string
}

/**
 * Each code that an error may have. A code is public: scripts and searches hold it. So a code is never reused and never
 * given another meaning; one that is not used any more leaves a gap. `docs/troubleshooting.md` is made of this.
 */
export const errorKinds = {
  // CM01: the command line
  CM0101: {
    title: 'There is no such command',
    cause: 'The first word is no command, so it is taken for a mistyped one.',
    remedy: '`codemachine help` lists the commands. Put a goal in quotes: `codemachine "fix the login"`.',
  },
  CM0102: {
    title: 'Flags that do not go together',
    cause: 'A flag means nothing to this command, excludes another one, or stands before the command.',
    remedy: '`codemachine help <command>` lists the flags of a command. Leave the other one out.',
  },
  CM0103: {
    title: 'The value of a flag is not understood',
    cause: 'A number, a time, a size or a name is not written as this flag takes it.',
    remedy: 'Write it as the example in the message. `codemachine help <command>` has more examples.',
  },
  CM0104: {
    title: 'The goal or the text is missing',
    cause: 'The command needs words that say what to do, and there are none, or they are blank.',
    remedy: 'Say it in quotes, or pass a file: `codemachine - < goal.md`.',
  },
  CM0105: {
    title: 'Nobody can be asked here: there is no terminal',
    cause: 'The command asks something or draws a screen, and its input or output is no terminal.',
    remedy: 'Use the flag that the message names (often `--yes`), or run it in a terminal.',
  },
  CM0106: {
    title: 'The named directory or file is not there',
    cause: 'The path is wrong, or the current directory was deleted.',
    remedy: 'Check the path. Go to a directory that exists, and type the command again.',
  },
  CM0107: {
    title: 'Standard input or a text cannot be used',
    cause: 'It is too long, it is not UTF-8, or it holds characters that no text has.',
    remedy: 'Save it as UTF-8, shorten it, or put the details into a file of the project and name that file.',
  },
  CM0108: {
    title: 'The output cannot be written, and is not whole',
    cause: 'The file or device behind the output does not take any more.',
    remedy: 'Free some space, or write to another place.',
  },
  CM0109: {
    title: 'No room left on the disk: the disk is full',
    cause: 'A file could not be written for want of space, or a quota is used up.',
    remedy: 'Free some space, such as with `codemachine prune --larger-than 2G`, then `codemachine resume`.',
  },
  CM0110: {
    title: 'The report or its picture cannot be written',
    cause: 'The path has the wrong ending or cannot be written to, or no browser is there to draw a picture.',
    remedy: 'Name another file. For a picture, install Chromium or Chrome.',
  },
  CM0111: {
    title: 'The edited text was not taken',
    cause: 'The editor failed, or saved something that cannot be used.',
    remedy: 'Set `EDITOR` to a program that works in this terminal, and try again.',
  },
  CM0112: {
    title: 'The system failed: EIO, EMFILE, ENOMEM or EAGAIN',
    cause: 'The disk has an error, or no more files, processes or memory can be had.',
    remedy: 'Repair the disk, or raise the limit (`ulimit -n`, `ulimit -u`). Then `codemachine resume`.',
  },

  // CM02: settings and files of the person
  CM0201: {
    title: 'A settings file cannot be read',
    cause: 'The file has a mistake of TOML, is too large, or is not readable. The message names file, line and column.',
    remedy: 'Correct that line. `codemachine doctor` checks all files.',
  },
  CM0202: {
    title: 'A setting has a wrong value',
    cause: 'A key is unknown, or its value is of the wrong kind. It comes from a file, a variable or a flag.',
    remedy: 'Correct it where the message says. `docs/reference/settings.md` lists all settings.',
  },
  CM0203: {
    title: "A project's own file may not set this",
    cause: "A project's `codemachine.toml` can make settings stricter, never looser: it may come from somebody else.",
    remedy: 'Put the setting into your own `config.toml`, or use the flag.',
  },
  CM0204: {
    title: 'A key of the screen cannot be remapped so',
    cause: 'The action or the key is unknown, is taken, or a terminal cannot send it.',
    remedy: 'Use another key in `[keys]`. `docs/reference/keys.md` lists the actions.',
  },
  CM0205: {
    title: 'An agent is defined wrongly',
    cause: 'Its table or file has a mistake, or its name is taken.',
    remedy: 'Correct it where the message says. `codemachine agents list` shows what counts.',
  },
  CM0206: {
    title: 'A prompt of an agent cannot be used',
    cause: 'The file of the prompt is missing, empty, too large, or lies outside of its folder.',
    remedy: 'Correct the file. `codemachine agents show <name>` prints the prompt.',
  },
  CM0207: {
    title: 'The specification is missing or cannot be used',
    cause: '`.codemachine/inputs/specifications.md` is missing, empty, too large, or no UTF-8 text.',
    remedy: 'Write into it what to build, then run `codemachine start`.',
  },
  CM0208: {
    title: 'There is no way to notify you',
    cause: 'No notification is configured.',
    remedy: 'Set `notify.command`, `notify.webhook` or `notify.bell`; see `docs/reference/notifications.md`.',
  },
  CM0209: {
    title: 'The directory cannot be worked in',
    cause: 'It is no directory, cannot be read, or its name has characters that the sandbox takes for a pattern.',
    remedy: 'Work in another directory, or rename this one.',
  },
  CM0210: {
    title: 'Something is in the way of a file or folder of codemachine',
    cause: 'A link, a file or a folder lies where codemachine has to write its own.',
    remedy: 'Look at it, and move it away.',
  },
  CM0211: {
    title: 'A file or folder cannot be written to',
    cause: 'You have no right to write there, or the file system is read-only.',
    remedy: 'Make it writable, or use another directory.',
  },

  // CM03: codex, login, providers
  CM0301: {
    title: 'No codex was found: codex is not installed',
    cause: 'codex is not on the PATH, or lies only in a folder where agents can write.',
    remedy: '`npm install --global @openai/codex`, or `--codex-bin /path/to/codex`.',
  },
  CM0302: {
    title: 'codex is not logged in',
    cause: 'There is no login of codex where rounds look for one, or it has expired.',
    remedy: '`codemachine login`; on a server `codemachine login --device-auth`.',
  },
  CM0303: {
    title: 'codex is too old',
    cause: 'codemachine needs a newer codex than the one that it found.',
    remedy: '`npm install --global @openai/codex@latest`',
  },
  CM0304: {
    title: 'The named codex cannot be used',
    cause: '`--codex-bin`, `CODEX_BIN` or a setting names a program that is missing, or that is no codex.',
    remedy: 'Correct the path, or leave it out to use the codex on the PATH.',
  },
  CM0305: {
    title: 'CODEX_HOME is wrong',
    cause: '`CODEX_HOME` or the setting `codex_home` names a directory that is not there.',
    remedy: 'Make the directory, unset `CODEX_HOME`, or set `codex_home = "auto"`.',
  },
  CM0306: {
    title: 'The login or logout did not work',
    cause: 'The login was cancelled or refused, or it cannot be stored.',
    remedy: 'Try `codemachine login` again. `codemachine login status` shows what rounds use.',
  },
  CM0307: {
    title: 'There is no such provider, or it has no address or model',
    cause: 'A provider is unknown, or its table lacks `base_url` or `model`.',
    remedy: 'Complete `[providers.NAME]` in your own `config.toml`; see `docs/guides/local-model.md`.',
  },
  CM0308: {
    title: 'No command runs in the sandbox of codex',
    cause: 'bubblewrap is missing, the kernel forbids user namespaces, or something in the directory is in the way.',
    remedy: '`codemachine doctor` names the cause; on Linux often `apt install bubblewrap`.',
  },
  CM0309: {
    title: 'codex refuses its configuration',
    cause: '`config.toml` of codex has a mistake, or a setting or model that this codex does not know.',
    remedy: 'Correct what codex names in its `config.toml`, or in the settings of codemachine.',
  },
  CM0310: {
    title: 'There is no codex for this platform',
    cause: 'codex is published for Linux, macOS and Windows only.',
    remedy: 'Name a codex that you have built yourself: `--codex-bin`.',
  },
  CM0311: {
    title: 'A model provider does not answer',
    cause: 'The server of the model is not running, has another address, or lacks the model.',
    remedy: 'Start the server, or correct `[providers.NAME]`; see `docs/guides/local-model.md`.',
  },
  CM0312: {
    title: 'An engine cannot run rounds',
    cause: 'No engine has that name, its program is missing, it has no login, or it does not speak the protocol.',
    remedy: '`codemachine engines` tries each; see `docs/guides/engines.md`.',
  },

  // CM04: limits and cost
  CM0401: {
    title: 'A limit of the session is used up',
    cause: 'The session has used all of its rounds, time, tokens or cost.',
    remedy: 'Raise it, in total: `codemachine resume --rounds 40`, or `--max-time`, `--max-tokens`, `--max-cost`.',
  },
  CM0402: {
    title: 'A model has no price, so --max-cost is refused',
    cause: 'A limit in money needs the price of each model that is used.',
    remedy: 'Add the price to `[prices]` (`docs/guides/cost.md`), or use `--max-tokens`.',
  },
  CM0403: {
    title: 'The session wants more than its run may take',
    cause: 'The run has a limit for all of its sessions, and a new one asks for more.',
    remedy: 'Give the session less, or begin the run with more.',
  },

  // CM05: git, worktrees, landing, savepoints
  CM0501: {
    title: 'git was not found',
    cause: 'git is not on the PATH, or lies only in a folder where agents can write.',
    remedy: 'Install git: https://git-scm.com',
  },
  CM0502: {
    title: 'git cannot look at the directory: a pipe or device is in the way',
    cause: 'A pipe, a socket or a device lies where git reads a file, and git would wait for ever.',
    remedy: 'Remove what the message names, or put a plain file there; then `codemachine resume`.',
  },
  CM0503: {
    title: 'git did not come to an end',
    cause: 'A disk or a network folder hangs, or the repository is very large.',
    remedy: 'Check that the disk has room and can be written; then `codemachine resume`.',
  },
  CM0504: {
    title: 'git failed',
    cause: "git refused a command; the message has git's own words.",
    remedy: 'Do what git says. `git status` and `git fsck` show the state of the repository.',
  },
  CM0505: {
    title: 'This is not a git repository that worktrees can be made of',
    cause: 'The directory is in no repository, or in a bare one or a submodule, or nothing is committed yet.',
    remedy: 'Commit once, or work in a clone. Without `--worktree` no repository is needed.',
  },
  CM0506: {
    title: 'The worktree cannot be made',
    cause: 'The folder beside the checkout cannot be written, a branch or folder has the name, or git refused.',
    remedy: 'Give another name: `--worktree <name>`.',
  },
  CM0507: {
    title: 'The worktree is not on its branch any more',
    cause: 'Somebody switched the branch of the worktree, or removed a folder in it.',
    remedy: 'Switch it back, or use another worktree.',
  },
  CM0508: {
    title: 'The .git file of a worktree was changed',
    cause: 'It no longer leads to its repository. An agent may have changed it.',
    remedy: 'Look who changed it before you run git there.',
  },
  CM0509: {
    title: 'The worktree is not set up: worktree.setup failed',
    cause: 'The command `worktree.setup` failed, or changed files that git tracks.',
    remedy: 'Read its output in the file that the message names, correct the command, and start again.',
  },
  CM0510: {
    title: 'A file cannot be copied into the worktree',
    cause: '`worktree.copy` names a file that cannot be copied.',
    remedy: 'Correct `worktree.copy`, or make the file readable.',
  },
  CM0511: {
    title: 'Which branch to land?',
    cause: 'There is no branch of codemachine, none of that name, or more than one.',
    remedy: '`codemachine land <name>`; the message lists the names.',
  },
  CM0512: {
    title: 'Changes that are not committed are in the way of landing',
    cause: 'The worktree, or the checkout that it lands in, has changes that no commit holds.',
    remedy: 'Commit them: `codemachine land <name> --commit "…"`; or put them elsewhere.',
  },
  CM0513: {
    title: 'Landing has a merge conflict',
    cause: 'The branch and its target changed the same files. Nothing was touched.',
    remedy: 'Merge by hand with the command that the message prints.',
  },
  CM0514: {
    title: 'The checkout is not ready for landing',
    cause: 'No branch is checked out, a merge is unfinished, or something else changes the branch.',
    remedy: 'Finish that, and land again.',
  },
  CM0515: {
    title: 'There is no such savepoint',
    cause: 'The name is wrong, no session has made one here, or they were pruned.',
    remedy: '`codemachine savepoints` lists them.',
  },
  CM0516: {
    title: 'The files could not be rewound',
    cause: 'A file is in the way or cannot be written, or the savepoint is broken.',
    remedy: 'Do what the message says, and rewind again.',
  },
  CM0517: {
    title: 'git does not know your name: no commit can be made',
    cause: "Neither `user.name` nor `user.email` is set in git's configuration.",
    remedy: '`git config --global user.name "…"` and `git config --global user.email "…"`',
  },

  // CM06: sessions, records, locks, the queue
  CM0601: {
    title: 'Another codemachine is running here',
    cause: 'One session at a time works in a directory, so that two never change the same files.',
    remedy: '`codemachine status` shows it, `codemachine stop` ends it. `--wait` waits, `--worktree` works beside it.',
  },
  CM0602: {
    title: 'The lock is not a lock of codemachine',
    cause: 'The file of the lock is damaged, or another program wrote it.',
    remedy: 'If no codemachine runs here, delete the file that the message names.',
  },
  CM0603: {
    title: 'There is no such session',
    cause: 'No session was begun in this directory, or none has that name.',
    remedy: '`codemachine list` shows those of this directory, `codemachine list --all` those of the machine.',
  },
  CM0604: {
    title: 'The name may mean several sessions or directories',
    cause: 'The beginning of an id fits more than one.',
    remedy: 'Use more of the id, or name the directory with `-C`.',
  },
  CM0605: {
    title: 'There is no session that can be resumed',
    cause: 'The session is done, it was the call of an agent, or a newer one took its place.',
    remedy: 'Begin a new session. `codemachine list` shows how each one ended.',
  },
  CM0606: {
    title: 'The session was written by a newer codemachine',
    cause: 'Its journal, template or round is unknown to this version.',
    remedy: 'Update codemachine to the version that wrote it, or a newer one.',
  },
  CM0607: {
    title: 'A session or its journal cannot be read',
    cause: 'The file is missing, damaged, or not readable; or a template of your own fails on it.',
    remedy: 'Put the file back, make it readable, or correct the template. Otherwise begin a new session.',
  },
  CM0608: {
    title: 'This directory is in no project of codemachine, or in another one',
    cause: 'No `.codemachine` folder is here or above, or the session belongs to another directory.',
    remedy: 'Go to the directory of the project, or name it with `-C`.',
  },
  CM0609: {
    title: 'codemachine cannot keep its records',
    cause: '`~/.codemachine`, or what `CODEMACHINE_HOME` names, cannot be written to or is no absolute path.',
    remedy: 'Set `CODEMACHINE_HOME` to a directory that you can write to.',
  },
  CM0610: {
    title: 'The records or the directory of a running session are gone',
    cause: 'Somebody deleted them while it ran.',
    remedy: 'Put the directory back and `codemachine resume`, or begin a new session. The work is in its directory.',
  },
  CM0611: {
    title: 'A text that a session keeps is gone or was changed',
    cause: 'A file in the records of the session does not fit to what its journal says.',
    remedy: 'Put the file back, or begin a new session.',
  },
  CM0612: {
    title: 'These records are the copy of a session of a fleet',
    cause: 'A worker of the fleet runs the session; here is only a copy to read.',
    remedy: '`codemachine fleet retry <id>` has a worker continue it.',
  },
  CM0613: {
    title: 'No codemachine runs here, so nobody can be told',
    cause: 'The command speaks to a running session, and none runs in this directory.',
    remedy: '`codemachine list` shows what there is, `codemachine resume` continues a session.',
  },
  CM0614: {
    title: 'A process of its own could not be started, or ended at once',
    cause: 'The detached runner ended before the session began. The message has its last words.',
    remedy: 'Run the same without `--detach` to see the whole error.',
  },
  CM0615: {
    title: 'There is no such question, or it is answered',
    cause: 'The number is wrong, the question was answered already, or it has no such option.',
    remedy: '`codemachine questions` lists what is open.',
  },
  CM0616: {
    title: 'There is no plan to answer',
    cause: 'The session has no plan, no such version of it, or asks for no answer just now.',
    remedy: '`codemachine plan` shows the plan, `codemachine replan "…"` has it changed.',
  },
  CM0617: {
    title: 'The running session refuses what it is told',
    cause: 'What you asked for does not fit to what the session does now. The message says why.',
    remedy: '`codemachine status` shows what it does, and what it asks.',
  },
  CM0618: {
    title: 'A prompt of the queue cannot be used, or does not wait any more',
    cause: 'It was started or removed meanwhile, or its file is damaged.',
    remedy: '`codemachine queue list` shows what waits.',
  },
  CM0619: {
    title: 'MAIN.md or tasks.json is broken, and there is no good copy of it',
    cause: 'A file of the memory is damaged, and the records hold no copy that can be put back.',
    remedy: 'Repair the file, or begin a new session.',
  },
  CM0620: {
    title: 'The session runs on another machine',
    cause: 'The process that holds the lock is on another machine or in a container.',
    remedy: 'Run the command there. `codemachine logs -f` reads it from here.',
  },
  CM0621: {
    title: 'These options cannot be used where the session begins like this',
    cause: 'What works by the specification, follows a session or begins from a prompt has different options.',
    remedy: 'Leave out what the message names.',
  },
  CM0622: {
    title: 'Processes of an earlier run are left',
    cause: 'A codemachine was killed before it could end what it had started.',
    remedy: 'Start codemachine in the same directory: it ends them.',
  },
  CM0623: {
    title: 'Others can read or write the records',
    cause: 'The records lie where agents or other users of the machine can reach them, so they prove nothing.',
    remedy: 'Set `CODEMACHINE_HOME` to a directory of your own, outside of the project and of `/tmp`, with mode 700.',
  },
  CM0624: {
    title: 'A conversation cannot be read',
    cause:
      "The agent's files are damaged, lead elsewhere by a link, or are of a version that codemachine does not know.",
    remedy: 'Adopt another conversation, or type the goal: `codemachine "…"`.',
  },
  CM0625: {
    title: 'There is no such conversation here',
    cause: 'No conversation of this directory has that id, or several begin like it.',
    remedy: '`codemachine adopt --list` shows them; `-C` names another directory.',
  },

  // CM07: gates, verification, review
  CM0701: {
    title: 'A gate is set wrongly',
    cause: 'There are too many gates, two have the same name, or one has a wrong command or timeout.',
    remedy: 'Correct it where the message says; see `docs/reference/gates.md`.',
  },
  CM0702: {
    title: 'There is nothing to verify: no certificate',
    cause: 'No session here is done, or the certificate of the session is gone.',
    remedy: '`codemachine list` shows which sessions are done.',
  },
  CM0703: {
    title: 'The certificate is damaged, or belongs to another session',
    cause: 'Somebody changed or replaced the file.',
    remedy: 'Do not trust it. Verify the session where it ran: `codemachine verify <session>`.',
  },
  CM0704: {
    title: 'The certificate is of another version of codemachine',
    cause: 'Its format is newer or older than the one that this version reads.',
    remedy: 'Verify it with the version that made it.',
  },
  CM0705: {
    title: 'There is nothing to review',
    cause: 'Nothing is changed, or nothing tells what the session began with.',
    remedy: '`codemachine review --goal "…"` reviews what is not committed.',
  },
  CM0706: {
    title: 'The review came to no answer',
    cause: 'The reviewer ended without an answer that can be used. The message says why.',
    remedy: 'Run `codemachine review` again.',
  },

  // CM08: page, screen, MCP, service
  CM0801: {
    title: 'The port is in use, or the address cannot be used',
    cause: 'Another program has the port, the port needs more rights, or the address is not of this machine.',
    remedy: '`codemachine web --port 0` takes any free port; `--host` names an address.',
  },
  CM0802: {
    title: 'The web page needs a TLS certificate',
    cause: 'On an address that others reach, the page is served encrypted only; or `--cert` or `--key` cannot be used.',
    remedy: 'Give `--cert` and `--key` (PEM), or leave it on this machine and use `ssh -L`.',
  },
  CM0803: {
    title: 'The page is not served, or could not be stopped',
    cause: 'No process serves the page, or it does not answer.',
    remedy: '`codemachine web` serves it here, and shows what goes wrong.',
  },
  CM0804: {
    title: 'The page is served already, with other options',
    cause: 'One page is served for each person, and the one that runs has another address.',
    remedy: '`codemachine web stop`, then the same command again.',
  },
  CM0805: {
    title: 'The device is not known, or the code to pair it is wrong',
    cause: 'A code counts once and for five minutes; after too many wrong ones it waits a minute.',
    remedy: '`codemachine web link` makes a new link, `codemachine web devices` lists the devices.',
  },
  CM0806: {
    title: 'Files of codemachine are missing',
    cause: 'The installation is not whole.',
    remedy: 'Install codemachine again.',
  },
  CM0807: {
    title: 'A request was not understood',
    cause: 'The page or an MCP client sent something of another version, or of the wrong shape.',
    remedy: 'Reload the page. For MCP, correct the argument that the message names.',
  },
  CM0808: {
    title: 'The session or prompt is gone',
    cause: 'It was removed or has ended since the page was drawn.',
    remedy: 'Reload the page.',
  },
  CM0809: {
    title: 'The directory is not named for this MCP server',
    cause: 'An MCP server works only in the directories that were named when it was started.',
    remedy: 'Start it with `codemachine mcp` and each directory, or name one of those.',
  },
  CM0810: {
    title: 'There is no such MCP tool or resource',
    cause: 'The name is wrong, or the tool writes and the server was started without `--allow-write`.',
    remedy: '`codemachine mcp --allow-write` allows tools that write.',
  },
  CM0811: {
    title: 'The service is not available or could not start a session',
    cause: 'The system has neither systemd nor launchd, or the session of codemachine ended right after its start.',
    remedy: '`codemachine service run` in a terminal shows what happens.',
  },
  CM0812: {
    title: 'Notifications of the page need https',
    cause: 'The push service of a browser is reached by https only.',
    remedy: 'Use a browser whose push service has an https address, or `notify.webhook`.',
  },
  CM0813: {
    title: 'This cannot be done from inside a round',
    cause: 'An agent at work called codemachine, which would change its own session.',
    remedy: 'Do it in a terminal of your own.',
  },

  // CM09: secrets
  CM0901: {
    title: 'The name of a secret is not allowed',
    cause: 'A name has capital letters, digits and `_`, begins with a letter, and is no variable of the system.',
    remedy: 'Use a name such as `SERVICE_API_KEY`.',
  },
  CM0902: {
    title: 'There is no such secret',
    cause: 'Nothing is stored under this name for the project.',
    remedy: '`codemachine secret set <NAME>` stores one, `codemachine secret list` shows the names.',
  },
  CM0903: {
    title: 'The value of a secret was not taken',
    cause: 'Nothing was given, the value is too short or too long, or there are too many secrets.',
    remedy: 'Type it at the hidden prompt, or pipe it in: `codemachine secret set <NAME> < file`.',
  },
  CM0904: {
    title: 'A command or text holds a secret, which is never kept',
    cause: 'A gate, an option or a text has the value of a secret in it.',
    remedy: 'Write the name of a variable in its place, such as `$SERVICE_API_KEY`.',
  },
  CM0905: {
    title: 'The check of a secret failed',
    cause: 'The command that tests the secret ended with an error.',
    remedy: 'Store a working value. A check that needs the network: `codemachine secret check <NAME> --network`.',
  },
  CM0906: {
    title: 'A secret cannot be exported there',
    cause: 'The file lies outside of the project, git does not ignore it, or a session runs.',
    remedy: 'Export into an ignored file of the project, such as `--to .env`, while no session runs.',
  },
  CM0907: {
    title: 'Stored secrets cannot be read',
    cause: 'A file of the store is damaged or not readable.',
    remedy: '`codemachine secret set <NAME>` stores it again.',
  },
  CM0908: {
    title: 'Too many files hold a secret',
    cause: 'A command wrote a secret into more files than can be denied to agents.',
    remedy: 'Remove these files before the session goes on.',
  },

  // CM10: workflows, templates, agents, teams
  CM1001: {
    title: 'A workflow file has mistakes',
    cause: 'The file is no TOML, or a step is not as the message says.',
    remedy: 'Correct each line, then `codemachine flow validate`.',
  },
  CM1002: {
    title: 'There is no such workflow',
    cause: 'The file is missing or cannot be read, or holds no workflow of that name.',
    remedy: '`codemachine flow list` shows them, `codemachine flow init` makes a first one.',
  },
  CM1003: {
    title: 'The value of a variable of a workflow cannot be used',
    cause: '`--var` or `--vars-file` names no variable, no file, or a value of the wrong kind.',
    remedy: 'Write `--var name=text`, `name=@file` or `name=@-`.',
  },
  CM1004: {
    title: 'The files of a first workflow cannot be made',
    cause: 'Something lies in their place, or the templates cannot be used.',
    remedy: 'Move away what the message names, and run `codemachine flow init` again.',
  },
  CM1005: {
    title: 'A step cannot be replayed: there is no fitting recording',
    cause: 'The step was never run for real, or its recording changed or is too long.',
    remedy: 'Run it for real, which records it: `codemachine flow run --no-mock`.',
  },
  CM1006: {
    title: '--from needs the result of an earlier run',
    cause: 'No earlier run has what the later steps use, or no step is called that.',
    remedy: 'Run the workflow from its beginning, or from an earlier step.',
  },
  CM1007: {
    title: 'A workflow uses a program that you have not named',
    cause: 'A workflow file may come from somebody else, so it chooses no program by itself.',
    remedy: 'Name the program yourself, as the message says.',
  },
  CM1008: {
    title: 'Which team or project?',
    cause: 'The command needs a project of a team, and it is missing, gone, or not a folder.',
    remedy: '`codemachine team list` shows the projects; name one with `--project`.',
  },
  CM1009: {
    title: 'There is no such agent, or it cannot be asked',
    cause: 'The name is wrong, the agent is disabled, or its terms do not fit.',
    remedy: '`codemachine agents list` shows all of them.',
  },
  CM1010: {
    title: 'There is no such template, or it does not begin so',
    cause: 'The name is wrong, or the template begins from a specification and not from a prompt.',
    remedy: '`codemachine templates list` shows them.',
  },
  CM1011: {
    title: 'The options of a template are wrong',
    cause: 'The template has no such option, or the options are too large.',
    remedy: 'Correct or leave out what the message names.',
  },
  CM1012: {
    title: 'The library is used wrongly',
    cause: 'A name is not allowed or taken, a function is missing, or the project was closed.',
    remedy: 'See `docs/reference/library.md`.',
  },
  CM1013: {
    title: 'An agent did not get its task done',
    cause: 'The call of the agent ended without an answer. The message says why.',
    remedy: 'Look at it with `codemachine logs`, and call the agent again.',
  },
  CM1014: {
    title: 'No session takes a task for an agent',
    cause: 'The session has ended, or its inbox cannot be written to from here.',
    remedy: '`codemachine status` shows whether it runs; then ask again.',
  },
  CM1015: {
    title: 'What a diff compares is not understood',
    cause: '`/diff` takes a round, a savepoint or two of them, and this is none, or it has no savepoint.',
    remedy: 'Such as `/diff 3`, `/diff start`, `/diff 2 4`.',
  },

  // CM11: fleets
  CM1101: {
    title: 'No database of the fleet is named, or its address is wrong',
    cause: 'The address is missing, is no address of PostgreSQL, or shows a password to others.',
    remedy: 'Use `--queue postgres://…`, `CODEMACHINE_QUEUE`, or `fleet.queue` in your own `config.toml`.',
  },
  CM1102: {
    title: 'A fleet needs the packages pg and pg-boss',
    cause: 'They are not installed with codemachine.',
    remedy: '`npm install --global pg pg-boss@12.35.0`',
  },
  CM1103: {
    title: 'The database of the fleet cannot be reached',
    cause: 'It is down, its address is wrong, or a network is in between that does not let it through.',
    remedy: '`codemachine fleet doctor` looks what is wrong.',
  },
  CM1104: {
    title: 'The connection to the database of the fleet is not safe',
    cause: 'It is not encrypted, or the certificate of the server is not trusted.',
    remedy: 'Leave `sslmode` out and name the certificate with `sslrootcert`, or use `ssh -L`.',
  },
  CM1105: {
    title: 'The database of the fleet does not let you in or does not allow this',
    cause: 'Name or password is wrong, or the login lacks a right or a team.',
    remedy: 'Set `PGUSER` and `PGPASSWORD`. `codemachine fleet setup` says which rights each role has.',
  },
  CM1106: {
    title: 'The database is not set up for a fleet',
    cause: 'There is no such database, its schema is missing or old, or PostgreSQL is older than 13.',
    remedy: 'Its owner types `codemachine fleet setup`.',
  },
  CM1107: {
    title: 'The database of the fleet is full or can only be read',
    cause: 'Its disk is full, or it is a replica.',
    remedy: '`codemachine fleet prune` frees space; name the server that takes writes.',
  },
  CM1108: {
    title: 'There is no such session in the fleet',
    cause: 'The id is wrong, or the session was pruned.',
    remedy: '`codemachine fleet list`',
  },
  CM1109: {
    title: 'The session of the fleet is in no state for that',
    cause: 'It has not begun, runs already, or has ended.',
    remedy: '`codemachine fleet show <id>` shows its state.',
  },
  CM1110: {
    title: 'Nothing is submitted: the goals have mistakes',
    cause: 'A line of the file, or a flag, is not as the message says.',
    remedy: 'Correct it and submit again; see `docs/reference/night-file.md`.',
  },
  CM1111: {
    title: 'The name of a worker is taken, or no worker has it',
    cause: 'Each worker of a fleet has a name of its own.',
    remedy: 'Give another `--name`. `codemachine fleet status` lists the names.',
  },
  CM1112: {
    title: 'The repository of a session of the fleet is not clear',
    cause: 'The directory is in no checkout, its origin is missing, or the address cannot be used.',
    remedy: 'Name the repository with `--repo`.',
  },
  CM1113: {
    title: 'The fleet is newer than this codemachine',
    cause: 'The database holds something that a newer version wrote.',
    remedy: 'Update codemachine.',
  },
  CM1114: {
    title: 'A worker cannot use its clone',
    cause: 'git failed in the clone, or a file lies where the session has to be put.',
    remedy: 'Do what the message says, or remove the clone: the worker makes it again.',
  },
  CM1115: {
    title: 'No worker takes a session of the fleet',
    cause: 'No worker runs, or none has the tags, the repository or the template; or an earlier session is not done.',
    remedy: 'Begin one: `codemachine worker`. `codemachine fleet doctor` says what is missing.',
  },
  CM1116: {
    title: 'The clock of a machine of the fleet is wrong',
    cause: 'It differs from the clock of the database, by which the fleet goes.',
    remedy: 'Have it set by the network, such as with systemd-timesyncd or chrony.',
  },
  CM1117: {
    title: 'A repository does not let this machine in',
    cause: 'git has no access to the remote from here.',
    remedy: 'Give the machine a key or a credential helper of its own.',
  },
} as const satisfies Record<`CM${number}`, ErrorKind>

export type ErrorCode = keyof typeof errorKinds
