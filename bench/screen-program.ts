import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { type Emulator, startInEmulator } from '../tests/support/emulator.ts'
import type { TestPlace } from '../tests/support/place.ts'
import type { Load, LoadKind, LoadReport } from './screen-load.ts'

const DIST = fileURLToPath(new URL('../dist/', import.meta.url))

/** The load program, built as the shipped screen is. Disposing of it removes it. */
export interface ScreenProgram extends AsyncDisposable {
  start(place: TestPlace, load: LoadKind): RunningLoad
}

/** From the last event of a load until its memory is looked at. */
export const SETTLE_MS = 1_500

/** It runs in an emulator of 80x24. */
export interface RunningLoad extends AsyncDisposable {
  terminal: Emulator
  /** Resolves when it has ended well. */
  report(): Promise<LoadReport>
}

/** Builds it below the folder of the built command line, where its packages are found. */
export async function buildScreenProgram(): Promise<ScreenProgram> {
  const folder = await mkdtemp(join(DIST, 'bench-'))
  await build({
    entryPoints: [fileURLToPath(new URL('screen-load.ts', import.meta.url))],
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.12',
    external: ['react-devtools-core'],
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    minifySyntax: true,
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
  })
  return {
    start: (place, load) => startLoad(place, join(folder, 'screen-load.js'), load),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

let reports = 0

function startLoad(place: TestPlace, program: string, wanted: LoadKind): RunningLoad {
  const report = join(place.root, `report-${reports++}.json`)
  const load: Load = { ...wanted, report, settleMs: SETTLE_MS }
  const terminal = startInEmulator(place, [JSON.stringify(load)], {
    command: [process.execPath, program],
    env: { NO_COLOR: undefined },
  })
  return {
    terminal,
    async report() {
      const { exitCode } = await terminal.ended
      if (exitCode !== 0) throw new Error(`The load ended with ${exitCode}.\n${terminal.all().slice(-40).join('\n')}`)
      return JSON.parse(readFileSync(report, 'utf8')) as LoadReport
    },
    [Symbol.asyncDispose]: () => terminal[Symbol.asyncDispose](),
  }
}
