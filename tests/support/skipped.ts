/** What stands behind a test's title where it is skipped: why; nothing where it runs. */
export const unless = (runs: boolean, why: string): string => (runs ? '' : ` (skipped: ${why})`)

export const isLinux = process.platform === 'linux'
export const isWindows = process.platform === 'win32'
