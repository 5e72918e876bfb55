/** A program that keeps the machine awake while it runs. */
export interface Holder {
  program: string
  args: readonly string[]
  /**
   * Whether it writes a line to its stdout once it holds: its stdin is given one, and stays open as long as we live.
   * One that does not say so holds if it has not ended soon.
   */
  says: boolean
}

/** What keeps a machine awake on a platform; null where nothing is known to. `pid`: the process with which it ends. */
export function holderOn(platform: NodeJS.Platform, pid: number): Holder | null {
  switch (platform) {
    case 'linux':
      // `cat` is run once the lock is taken, answers the line, and ends when its stdin does.
      return { program: 'systemd-inhibit', args: [...INHIBIT, 'cat'], says: true }
    case 'darwin':
      return { program: 'caffeinate', args: ['-i', '-w', String(pid)], says: false }
    case 'win32':
      return { program: 'powershell.exe', args: [...POWERSHELL, AWAKE], says: true }
    default:
      return null
  }
}

const INHIBIT = ['--what=sleep:idle', '--who=codemachine', '--why=A session is running', '--mode=block']

const POWERSHELL = ['-NoProfile', '-NonInteractive', '-Command']

/** 2147483649: ES_CONTINUOUS | ES_SYSTEM_REQUIRED, in force until the thread ends. Decimal, for `0x80000001` is negative there. */
const AWAKE = [
  `$ErrorActionPreference = 'Stop'`,
  `$kernel = Add-Type -PassThru -Namespace Codemachine -Name Kernel -MemberDefinition '[DllImport("kernel32.dll")] public static extern uint SetThreadExecutionState(uint flags);'`,
  `if ($kernel::SetThreadExecutionState([uint32]2147483649) -eq 0) { throw 'SetThreadExecutionState failed' }`,
  `[Console]::Out.WriteLine('held')`,
  `[void][Console]::In.ReadToEnd()`,
].join('; ')
