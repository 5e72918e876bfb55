import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Drawn, Emulator } from '../../../support/emulator.ts'
import { UNTOUCHED } from '../../../support/emulator-modes.ts'
import type { TestPlace } from '../../../support/place.ts'

/** Ends within the bound of a test, with the terminal as it was found. Answers the exit code. */
export async function leavesAsFound(seen: Drawn | Emulator): Promise<number | null> {
  const { exitCode } = await seen.ended
  expect(seen.modes()).toEqual(UNTOUCHED)
  if ('stty' in seen) expect(await seen.stty()).toBe(seen.sttyAtStart())
  expect(seen.title()).toBe('')
  expect(seen.cursor().x, 'the prompt of the shell begins in the first column').toBe(0)
  return exitCode
}

/** The start screen is there and takes keys. */
export async function started(seen: Drawn): Promise<void> {
  await seen.until(/Login .*\n(?:.*\n)*› ?\n─+/)
}

/** The rows of a screen that hold this. */
export function rowsWith(rows: readonly string[], text: string | RegExp): string[] {
  return rows.filter(row => (typeof text === 'string' ? row.includes(text) : text.test(row)))
}

/** What would wipe the screen or the scrollback, as far as it was written. */
export function wipesIn(seen: Drawn): string[] {
  const bytes = seen.bytes()
  return ['\x1b[2J', '\x1b[3J', '\x1bc'].filter(wipe => bytes.includes(wipe))
}

/** Writes the person's own settings. */
export async function personSettings({ home }: TestPlace, settings: string): Promise<void> {
  const folder = join(home, '.config', 'codemachine')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'config.toml'), settings)
}

/** The app-servers that work in a place. */
export function appServersOf({ root }: TestPlace): number[] {
  const read = (pid: string, file: string) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'latin1')
    } catch {
      return ''
    }
  }
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return pids
    .filter(pid => read(pid, 'cmdline').endsWith('app-server\0') && read(pid, 'environ').includes(root))
    .map(Number)
}

/** A promise, and what resolves it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}
