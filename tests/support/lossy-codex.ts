import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findRealCodex } from './find-real-codex.ts'

/**
 * Writes a program that is the real codex, of whose lines some are lost on the way. `isLost` is a JavaScript expression over
 * `message`, a parsed line.
 */
export async function writeLossyCodex(directory: string, isLost: string): Promise<string> {
  const { path: codex } = await findRealCodex()
  const path = join(directory, `lossy-codex-${Math.random().toString(36).slice(2)}.mjs`)
  const program = `#!${process.execPath}
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
const codex = spawn(${JSON.stringify(codex)}, process.argv.slice(2), { stdio: ['inherit', 'pipe', 'inherit'] })
codex.on('exit', (code, signal) => { process.exitCode = code ?? 1 })
const isLost = message => ${isLost}
const parsed = line => { try { return JSON.parse(line) } catch { return {} } }
createInterface({ input: codex.stdout, crlfDelay: Infinity }).on('line', line => {
  if (!isLost(parsed(line))) process.stdout.write(line + '\\n')
})
`
  await writeFile(path, program, { mode: 0o755 })
  return path
}
