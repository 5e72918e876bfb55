import { join } from 'node:path'
import { shellWord } from './shell-word.ts'

/** Input of a service definition. */
interface ServicePlaces {
  /** The person's home directory and configuration directory; absolute. */
  home: string
  configHome: string
  /** The program and its arguments; the first two are absolute paths. */
  command: readonly string[]
  /** Its whole environment. */
  env: Readonly<Record<string, string>>
  /** Its output file, if the service manager has no log. */
  log: string
  /** The user's numeric id. */
  uid: number
  /** True if set up over SSH: launchd then has no screen session. */
  isRemote: boolean
}

/** A service of the person's service manager. It starts with their session, and restarts after a failure. */
export interface Service {
  /** Its file; absolute. */
  path: string
  text: string
  /** Commands to run before the start; failures are ignored. */
  before: readonly (readonly string[])[]
  /** Commands to start and to remove the service, each with arguments. */
  begin: readonly (readonly string[])[]
  end: readonly (readonly string[])[]
  /** Command that exits with 0 while the service runs. */
  look: readonly string[]
  /** Command line to read its output. */
  logs: string
}

const NAME = 'codemachine'

/** Absolute path of the service file, by service manager. */
export const SERVICE_FILES = {
  systemd: ({ configHome }: Pick<ServicePlaces, 'configHome'>) =>
    join(configHome, 'systemd', 'user', `${NAME}.service`),
  launchd: ({ home }: Pick<ServicePlaces, 'home'>) => join(home, 'Library', 'LaunchAgents', `${NAME}.plist`),
} as const

/** Returns the service for this platform; null: not supported. The launchd one was never run. */
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

/** Quotes a word for systemd.syntax(7): double quotes, escaped specifiers. */
function quoted(word: string): string {
  return `"${word.replaceAll('%', '%%').replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`
}

function launchAgent(places: ServicePlaces): Service {
  const { home, command, env, log, uid, isRemote } = places
  // The screen's domain exists only while the person is logged in there; the user's exists after any login.
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
    // Unload first: launchd keeps the old text of a loaded service.
    before: ['gui', 'user'].map(each => ['launchctl', 'bootout', `${each}/${uid}/${NAME}`]),
    begin: [['launchctl', 'bootstrap', domain, path]],
    end: [['launchctl', 'bootout', `${domain}/${NAME}`]],
    look: ['launchctl', 'print', `${domain}/${NAME}`],
    logs: `tail -f ${shellWord(log, 'darwin')}`,
  }
}

/** Lets launchd load it in a session without a screen. */
const REMOTE = '  <key>LimitLoadToSessionType</key><string>Background</string>\n'

/** Returns true if a service's text was written over SSH. */
export function isRemoteService(text: string): boolean {
  return text.includes(REMOTE)
}

function inXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
