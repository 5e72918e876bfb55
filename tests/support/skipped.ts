import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What stands behind a test's title where it is skipped: why; nothing where it runs. */
export const unless = (runs: boolean, why: string): string => (runs ? '' : ` (skipped: ${why})`)

export const isLinux = process.platform === 'linux'
export const isWindows = process.platform === 'win32'

/** Why this user cannot mount a small disk; null if they can. */
export function problemOfMounting(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'a small disk can only be mounted by root on Linux'
  const folder = mkdtempSync(join(tmpdir(), 'codemachine-mount-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], { stdio: 'pipe' })
    execFileSync('umount', [folder])
    return null
  } catch {
    return 'mount is not permitted here'
  } finally {
    rmSync(folder, { recursive: true })
  }
}
