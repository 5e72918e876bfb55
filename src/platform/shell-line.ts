/**
 * Program and arguments that run a line as a person would type it, with both streams in one, so that they keep their
 * order. No login shell: its profile would put the system's PATH in the place of the person's, which agents' commands
 * have. Windows: `cmd.exe`; never run on a real one yet.
 */
export function shellLine(line: string, platform: NodeJS.Platform): string[] {
  if (platform === 'win32') return ['cmd.exe', '/d', '/s', '/c', `(${line}) 2>&1`]
  return ['/bin/sh', '-c', BASH_OR_SH, 'sh', line]
}

const BASH_OR_SH = 'if [ -x /bin/bash ]; then exec /bin/bash -c "$1" 2>&1; else exec /bin/sh -c "$1" 2>&1; fi'
