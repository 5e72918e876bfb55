import { join } from 'node:path'

/** What a service is made of. */
interface ServicePlaces {
  /** The person's home directory, and where programs keep their configuration; absolute. */
  home: string
  configHome: string
  /** The program and its arguments; the first two are absolute paths. */
  command: readonly string[]
  /** The variables that it is given; nothing else of the environment is. */
  env: Readonly<Record<string, string>>
  /** The file that its output goes to, where the service manager has no log of its own. */
  log: string
  /** The number of the user. */
  uid: number
  /** Whether it is begun over SSH: launchd has no session of the screen then. */
  isRemote: boolean
}

/** A service of the person's own service manager, which starts with their session and is started again if it fails. */
export interface Service {
  /** Its file; absolute. */
  path: string
  text: string
  /** What is asked of the manager before it takes it up; that it fails is no news. */
  before: readonly (readonly string[])[]
  /** The commands that have the manager take it up, and let it go, each with its arguments. */
  begin: readonly (readonly string[])[]
  end: readonly (readonly string[])[]
  /** The command that exits with 0 while it runs. */
  look: readonly string[]
  /** How its output is read. */
  logs: string
}

const NAME = 'codemachine'

/** Where the file of a service of that kind lies; absolute. */
export const SERVICE_FILES = {
  systemd: ({ configHome }: Pick<ServicePlaces, 'configHome'>) =>
    join(configHome, 'systemd', 'user', `${NAME}.service`),
  launchd: ({ home }: Pick<ServicePlaces, 'home'>) => join(home, 'Library', 'LaunchAgents', `${NAME}.plist`),
} as const

/** The service on this platform; null: there is none for it. launchd's was never run. */
export function serviceOn(platform: NodeJS.Platform, places: ServicePlaces): Service | null {
  if (platform === 'linux') return systemdUnit(places)
  return platform === 'darwin' ? launchAgent(places) : null
}

function systemdUnit(places: ServicePlaces): Service {
  const { command, env } = places
  const unit = `${NAME}.service`
  const systemctl = (...args: string[]) => ['systemctl', '--user', ...args]
  return {
    path: SERVICE_FILES.systemd(places),
    text: `[Unit]
Description=codemachine: resumes sessions that were cut off, and runs the queues

[Service]
Type=exec
ExecStart=${command.map(word => quoted(word.replaceAll('$', '$$$$'))).join(' ')}
WorkingDirectory=%h
${Object.entries(env)
  .map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}\n`)
  .join('')}Restart=on-failure
RestartSec=30
KillMode=mixed
TimeoutStopSec=90

[Install]
WantedBy=default.target
`,
    before: [],
    begin: [systemctl('daemon-reload'), systemctl('enable', unit), systemctl('restart', unit)],
    end: [systemctl('disable', '--now', unit)],
    look: systemctl('is-active', '--quiet', unit),
    logs: `journalctl --user -u ${NAME} -f`,
  }
}

/** As systemd.syntax(7) has it: in double quotes, with its own specifiers escaped. */
function quoted(word: string): string {
  return `"${word.replaceAll('%', '%%').replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`
}

function launchAgent(places: ServicePlaces): Service {
  const { home, command, env, log, uid, isRemote } = places
  // That of the screen is there only while the person is logged in at it; that of the user from any login on.
  const domain = `${isRemote ? 'user' : 'gui'}/${uid}`
  const path = SERVICE_FILES.launchd(places)
  const string = (text: string) => `<string>${inXml(text)}</string>`
  const variables = Object.entries(env).map(([name, value]) => `    <key>${inXml(name)}</key>${string(value)}\n`)
  return {
    path,
    text: `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>${string(NAME)}
  <key>ProgramArguments</key>
  <array>
${command.map(word => `    ${string(word)}\n`).join('')}  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join('')}  </dict>
  <key>WorkingDirectory</key>${string(home)}
${isRemote ? REMOTE : ''}  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>30</integer>
  <key>ExitTimeOut</key><integer>90</integer>
  <key>StandardOutPath</key>${string(log)}
  <key>StandardErrorPath</key>${string(log)}
</dict>
</plist>
`,
    // What is loaded already is not loaded again, but goes on with the text of before.
    before: ['gui', 'user'].map(each => ['launchctl', 'bootout', `${each}/${uid}/${NAME}`]),
    begin: [['launchctl', 'bootstrap', domain, path]],
    end: [['launchctl', 'bootout', `${domain}/${NAME}`]],
    look: ['launchctl', 'print', `${domain}/${NAME}`],
    logs: `tail -f ${log}`,
  }
}

/** Has launchd load it in a session without a screen. */
const REMOTE = '  <key>LimitLoadToSessionType</key><string>Background</string>\n'

/** Whether the text of a service was written over SSH. */
export function isRemoteService(text: string): boolean {
  return text.includes(REMOTE)
}

function inXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
