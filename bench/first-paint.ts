import { stripVTControlCharacters } from 'node:util'
import { spawn } from '@lydell/node-pty'
import type { TestPlace } from '../tests/support/place.ts'

const BOUND_MS = 30_000

/** From before a program is started in a terminal until something can be read there, ms. Then it is killed. */
export function firstPaint(place: TestPlace, args: readonly string[]): Promise<number> {
  const { CI: _ci, ...inherited } = place.env
  const env = { ...inherited, NODE_ENV: 'production' }
  return new Promise((resolve, reject) => {
    const startedAt = performance.now()
    const terminal = spawn(process.execPath, [...args], { cwd: place.directory, env, cols: 80, rows: 24 })
    let paintedMs: number | null = null
    let shown = ''
    const bound = setTimeout(() => terminal.kill('SIGKILL'), BOUND_MS)
    terminal.onData(data => {
      shown += data
      if (paintedMs !== null || stripVTControlCharacters(shown).trim() === '') return
      paintedMs = performance.now() - startedAt
      terminal.kill('SIGKILL')
    })
    terminal.onExit(() => {
      clearTimeout(bound)
      if (paintedMs === null) reject(new Error(`${args.join(' ')} has shown nothing.`))
      else resolve(paintedMs)
    })
  })
}
