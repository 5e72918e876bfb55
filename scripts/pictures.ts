import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Emulator, startInEmulator } from '../tests/support/emulator.ts'
import type { TestPlace } from '../tests/support/place.ts'
import { openScene } from '../tests/support/scene.ts'
import { replaceInRow } from './picture-replace.ts'
import { SHOTS, type Shot, type Step } from './picture-shots.ts'
import { pictureSvg, type Scheme } from './picture-svg.ts'

// `node scripts/pictures.ts [name …]`: runs codemachine in a real pseudo-terminal (build first) and writes what is
// seen there as docs/pictures/NAME-light.svg and NAME-dark.svg.
const FOLDER = 'docs/pictures'
/** For how long a run may take until its picture is taken, on a machine that is busy with others. */
const LIFE_MS = 300_000
const SCHEMES = ['light', 'dark'] as const
/** Where this machine keeps the project, which is nobody's concern. */
const TEMPORARY = /\/\S*codemachine-(test|demo)-\w{6}/
// A place below the system's temporary directory is one that codemachine warns of.
const PLACES = fileURLToPath(new URL('../node_modules/.cache/codemachine-pictures/', import.meta.url))

const wanted = process.argv.slice(2)
const unknown = wanted.filter(name => !SHOTS.some(shot => shot.name === name))
if (unknown.length > 0) {
  process.stderr.write(
    `No such picture: ${unknown.join(', ')}. There are ${SHOTS.map(({ name }) => name).join(', ')}.\n`,
  )
  process.exit(2)
}
for (const folder of [FOLDER, PLACES]) await mkdir(folder, { recursive: true })
const SYSTEM = tmpdir()
process.env.TMPDIR = PLACES
for (const shot of SHOTS) {
  if (wanted.length === 0 || wanted.includes(shot.name)) await Promise.all(SCHEMES.map(scheme => take(shot, scheme)))
}

async function take(shot: Shot, scheme: Scheme): Promise<void> {
  await using scene = await openScene([], { name: 'linkcheck', account: () => null })
  const { place } = scene
  await using demo = shot.besideDemo ? await startDemo(place, scheme) : null
  await using short = shot.part === undefined ? null : await shortPlace()
  await using seen = start(place, shot, scheme, demo ?? short ?? {})
  for (const step of shot.steps) await act(seen, step)
  const path = join(FOLDER, `${shot.name}-${scheme}.svg`)
  await writeFile(path, draw(seen, shot, scheme))
  process.stdout.write(`${path}\n`)
}

/** Where the path of a report fits into a row; a demo warns of no place. */
async function shortPlace(): Promise<Where & AsyncDisposable> {
  const folder = await mkdtemp(join(SYSTEM, 'p-'))
  return {
    env: { TMPDIR: folder },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

interface Where {
  cwd?: string
  env?: Record<string, string>
}

function start(
  place: TestPlace,
  { args, columns, rows }: Pick<Shot, 'args' | 'columns' | 'rows'>,
  scheme: Scheme,
  where: Where,
) {
  const env = {
    NO_COLOR: undefined,
    HOME: place.root,
    CODEMACHINE_HOME: join(place.root, '.codemachine'),
    TMPDIR: place.home,
    COLORFGBG: scheme === 'dark' ? '15;0' : '0;15',
    ...where.env,
  }
  return startInEmulator(place, args, { ...where, columns, rows, background: scheme, env, lifeMs: LIFE_MS })
}

/** A demo in a terminal of its own, and where another terminal finds it. */
async function startDemo(place: TestPlace, scheme: Scheme): Promise<Where & AsyncDisposable> {
  const demo = start(place, { args: ['demo', '--plain'], columns: 200, rows: 50 }, scheme, {})
  await demo.untilInAll('It works in ')
  await demo.untilInAll(/round 1/)
  const directory = /It works in (\S+?)\.?$/m.exec(demo.all().join('\n'))?.[1]
  if (directory === undefined) throw new Error(`The demo does not say where it works.\n${demo.all().join('\n')}`)
  const records = join(place.root, '.codemachine', 'demo', basename(dirname(directory)))
  return {
    cwd: directory,
    env: { CODEMACHINE_HOME: records },
    [Symbol.asyncDispose]: () => demo[Symbol.asyncDispose](),
  }
}

async function act(seen: Emulator, step: Step): Promise<void> {
  if ('until' in step) await seen.until(step.until, { withinMs: LIFE_MS })
  else if ('press' in step) seen.press(step.press)
  else seen.type(step.type)
}

function draw(seen: Emulator, { columns, rows, label, part }: Shot, scheme: Scheme): string {
  const shown = seen.screen()
  const first = part === undefined ? 0 : shown.findLastIndex(row => part[0].test(row))
  const last = part === undefined ? rows - 1 : shown.findLastIndex(row => part[1].test(row))
  if (first === -1 || last < first) throw new Error(`The rows of the picture are not there.\n${shown.join('\n')}`)
  const cells = Array.from({ length: last - first + 1 }, (_, at) =>
    Array.from({ length: columns }, (_, x) => seen.cellAt(x, first + at)),
  )
  const cursor = seen.cursor()
  const { x } = cursor
  const y = cursor.y - first
  const visible = cursor.visible && y >= 0 && y < cells.length
  return pictureSvg(
    {
      rows: cells.map(row => replaceInRow(row, TEMPORARY, '~')),
      columns,
      caret: visible ? { x, y } : null,
      title: seen.title() || 'codemachine',
      label,
    },
    scheme,
  )
}
