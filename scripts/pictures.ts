import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Browser } from 'playwright-core'
import { openBrowser } from '../tests/support/browser.ts'
import { startCodemachine } from '../tests/support/codemachine.ts'
import { type Emulator, startInEmulator } from '../tests/support/emulator.ts'
import type { TestPlace } from '../tests/support/place.ts'
import { replaceInRow } from './picture-replace.ts'
import { pictureSvg, type Scheme } from './picture-svg.ts'
import { type PageStep, type Shot, type Size, type Step, TOURS, type Tour } from './picture-tours.ts'

// `node scripts/pictures.ts [NAME or NAME-80x24 …]`: runs codemachine in real pseudo-terminals (build first) and writes what is seen
// there to docs/pictures: as NAME-light.svg and NAME-dark.svg, those of the gallery as NAME-80x24.svg and so on.
// `node scripts/pictures.ts --before COMMIT`: draws none; writes a page that shows each beside what that commit's program drew.
const FOLDER = 'docs/pictures'
/** For how long a run may take until its picture is taken, on a machine that is busy with others. */
const LIFE_MS = 300_000
/** Until all that a key brings about is drawn. */
const SETTLE_MS = 500
const SCHEMES = ['light', 'dark'] as const
const SIZES: readonly Size[] = [
  { columns: 80, rows: 24 },
  { columns: 120, rows: 40 },
]
const IS_PICTURE = /\.(?:svg|png)$/
const SMALL: Size = { columns: 40, rows: 10 }
/** Where this machine keeps the project, which is nobody's concern. */
const TEMPORARY = /\/\S*codemachine-(test|demo)-\w{6}/
// A place below the system's temporary directory is one that codemachine warns of.
const PLACES = fileURLToPath(new URL('../node_modules/.p/', import.meta.url))

const GALLERY_HEAD = `# What codemachine looks like

Each picture shows a real run, with the real codex and a scripted model. The terminals have 80 × 24, 120 × 40
and sometimes 40 × 10 characters. \`npm run pictures\` makes the pictures and this page.
`

/** One run in one terminal. */
interface Take {
  tour: Tour
  size: Size
  scheme: Scheme
  /** What its files are called, behind the name. */
  suffix: string
}

const [option, commit] = process.argv.slice(2)
if (option === '--before') {
  process.stdout.write(`${await beforeAndAfter(commit ?? 'HEAD')}\n`)
  process.exit()
}
const wanted = process.argv.slice(2)
const takes = TOURS.flatMap(takesOf)
const names = [...new Set(TOURS.flatMap(({ steps }) => steps.map(nameOf)).filter(name => name !== null))]
const unknown = wanted.filter(name => !takes.some(each => each.tour.steps.some(step => isNamed(step, each, name))))
if (unknown.length > 0) {
  process.stderr.write(`No such picture: ${unknown.join(', ')}. There are ${names.join(', ')}.\n`)
  process.exit(2)
}
for (const folder of [FOLDER, PLACES]) await mkdir(folder, { recursive: true })
const SYSTEM = tmpdir()
process.env.TMPDIR = PLACES
for (const sideBySide of pairs(takes.filter(each => lastStep(each) !== -1))) {
  await Promise.all(sideBySide.map(each => take(each).catch(tell)))
}
if (wanted.length === 0) await write('README.md', galleryPage())

function tell(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

function takesOf(tour: Tour): Take[] {
  const { linked } = tour
  if (linked) return SCHEMES.map(scheme => ({ tour, size: linked, scheme, suffix: scheme }))
  return [...SIZES, SMALL].map(size => ({ tour, size, scheme: 'dark', suffix: `${size.columns}x${size.rows}` }))
}

/** The page that shows the gallery: a line for each moment, and its pictures. */
function galleryPage(): string {
  const shown = TOURS.filter(({ linked }) => !linked).flatMap(tour =>
    tour.steps.flatMap(step => {
      if (!('label' in step)) return []
      const files = takesOf(tour).flatMap(each => (isWanted(step, each) ? filesOf(step, each) : []))
      return [`## ${step.label}\n\n${files.map(file => `![${step.label}](${file})`).join('\n')}\n`]
    }),
  )
  return `${GALLERY_HEAD}\n${shown.join('\n')}`
}

/** Writes the pictures of a commit and those of today side by side, as one page in a temporary folder. Returns its path. */
async function beforeAndAfter(before: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-pictures-'))
  const git = (...args: string[]) => execFileSync('git', args, { maxBuffer: 100_000_000 })
  const old = String(git('ls-tree', '--name-only', before, `${FOLDER}/`)).split('\n')
  await Promise.all([mkdir(join(folder, 'before')), cp(FOLDER, join(folder, 'after'), { recursive: true })])
  for (const path of old.filter(each => IS_PICTURE.test(each)))
    await writeFile(join(folder, 'before', basename(path)), git('show', `${before}:${path}`))
  const [left, right] = await Promise.all(['before', 'after'].map(side => readdir(join(folder, side))))
  const names = [...new Set([...(left ?? []), ...(right ?? [])])].filter(each => IS_PICTURE.test(each)).sort()
  const cell = (side: string, all: readonly string[] = [], name: string) =>
    `<td>${all.includes(name) ? `<img src="${side}/${name}" alt="${name}, ${side}">` : 'none'}</td>`
  const rows = names.map(name => `<tr><th>${name}</th>${cell('before', left, name)}${cell('after', right, name)}</tr>`)
  const page = join(folder, 'index.html')
  const style = '<style>img{width:100%}td{width:45%;vertical-align:top}</style>'
  await writeFile(
    page,
    `<!doctype html><meta charset="utf-8"><title>Before and after</title>${style}<table>${rows.join('\n')}</table>\n`,
  )
  return page
}

/** What a step of a tour writes. */
function filesOf(step: Step, { suffix }: Take): string[] {
  if ('page' in step) return SCHEMES.map(scheme => `${step.page}-${scheme}.png`)
  return 'shot' in step ? [`${step.shot}-${suffix}.svg`] : []
}

function pairs<T>(all: readonly T[]): T[][] {
  return all.flatMap((_, at) => (at % 2 === 0 ? [all.slice(at, at + 2)] : []))
}

/** The name of the picture that a step takes; null if it takes none. */
function nameOf(step: Step): string | null {
  if ('shot' in step) return step.shot
  return 'page' in step ? step.page : null
}

function isNamed(step: Step, { suffix }: Pick<Take, 'suffix'>, name: string): boolean {
  return nameOf(step) !== null && (name === nameOf(step) || name === `${nameOf(step)}-${suffix}`)
}

function isWanted(step: Step, { size, suffix }: Take): boolean {
  if (wanted.length > 0 && !wanted.some(name => isNamed(step, { suffix }, name))) return false
  if (nameOf(step) === null) return false
  if ('page' in step) return size === SIZES[1]
  return size !== SMALL || ('small' in step && step.small === true)
}

function lastStep(take: Take): number {
  return take.tour.steps.findLastIndex(step => isWanted(step, take))
}

async function take(each: Take): Promise<void> {
  const { tour } = each
  const gates = new Map<string, PromiseWithResolvers<void>>()
  const gate = (name: string) => {
    const known = gates.get(name) ?? Promise.withResolvers<void>()
    gates.set(name, known)
    return known
  }
  await using scene = await tour.scene(name => gate(name).promise)
  const { place } = scene
  await using short = await shortPlace(each)
  for (const args of tour.before ?? []) {
    await using ran = start(place, args, each, {})
    await ran.ended
  }
  await using seen = start(place, tour.args, each, short.env)
  for (const step of tour.steps.slice(0, lastStep(each) + 1)) {
    if ('open' in step) gate(step.open).resolve()
    else if ('page' in step) await takePage(place, each, step)
    else if (!('shot' in step)) await act(seen, step)
    else if (isWanted(step, each)) await takeShot(seen, each, step)
  }
}

async function takeShot(seen: Emulator, each: Take, shot: Shot): Promise<void> {
  await delay(SETTLE_MS)
  for (const file of filesOf(shot, each)) await write(file, draw(seen, each, shot))
}

async function write(name: string, content: string | Buffer): Promise<void> {
  const path = join(FOLDER, name)
  await writeFile(path, content)
  process.stdout.write(`${path}\n`)
}

/** Where the path of a report fits into a row; a demo warns of no place. */
async function shortPlace({ tour }: Take): Promise<{ env: Record<string, string> } & AsyncDisposable> {
  if (tour.args[0] !== 'demo') return { env: {}, [Symbol.asyncDispose]: async () => {} }
  const folder = await mkdtemp(join(SYSTEM, 'p-'))
  return {
    env: { TMPDIR: folder },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }),
  }
}

function start(place: TestPlace, args: readonly string[], { size, scheme }: Take, more: Record<string, string>) {
  const env = {
    NO_COLOR: undefined,
    HOME: place.root,
    CODEMACHINE_HOME: join(place.root, '.codemachine'),
    TMPDIR: place.home,
    COLORFGBG: scheme === 'dark' ? '15;0' : '0;15',
    ...more,
  }
  return startInEmulator(place, args, { ...size, background: scheme, env, lifeMs: LIFE_MS })
}

async function act(seen: Emulator, step: Exclude<Step, Shot | PageStep | { open: string }>): Promise<void> {
  if ('until' in step) await seen.until(step.until, { withinMs: LIFE_MS })
  else if ('printed' in step) await seen.untilInAll(step.printed, { withinMs: LIFE_MS })
  else if ('gone' in step) {
    await seen.until(rows => !rows.some(row => row.includes(step.gone)), { withinMs: LIFE_MS })
    await delay(SETTLE_MS)
  } else if ('press' in step) seen.press(step.press)
  else seen.type(step.type)
}

async function takePage(place: TestPlace, each: Take, step: PageStep): Promise<void> {
  if (!isWanted(step, each)) return
  const browser = await openBrowser()
  try {
    for (const scheme of SCHEMES) {
      const png =
        step.of === undefined
          ? await report(browser, place, each, scheme)
          : await web(browser, place, { ...step, of: step.of }, scheme)
      await write(`${step.page}-${scheme}.png`, png)
    }
  } finally {
    await browser.close()
  }
}

/** The first screenful of the report of the newest session. */
async function report(browser: Browser, place: TestPlace, each: Take, colorScheme: Scheme): Promise<Buffer> {
  const page = join(place.root, 'report.html')
  await using written = start(place, ['report', '--output', page], each, {})
  await written.ended
  const tab = await browser.newPage({ colorScheme, viewport: { width: 1_100, height: 1_100 } })
  await tab.goto(pathToFileURL(page).href)
  return await tab.screenshot()
}

/** A view of the newest session on the page. */
async function web(
  browser: Browser,
  place: TestPlace,
  { of, wide }: Pick<PageStep, 'wide'> & { of: NonNullable<PageStep['of']> },
  colorScheme: Scheme,
): Promise<Buffer> {
  const env = { HOME: place.root, CODEMACHINE_HOME: join(place.root, '.codemachine') }
  await using serving = startCodemachine(place, ['web', '--port', '0', '--json'], { env })
  const { promise: link, resolve } = Promise.withResolvers<string>()
  serving.process.stdout?.on('data', (text: Buffer) => {
    const found = /"link":"([^"]+)"/.exec(String(text))?.[1]
    if (found !== undefined) resolve(found)
  })
  const failed = serving.ended.then(({ stderr }) => Promise.reject(new Error(stderr)))
  const context = await browser.newContext({
    colorScheme,
    viewport: wide ? { width: 1280, height: 800 } : { width: 390, height: 844 },
    deviceScaleFactor: wide ? 1 : 2,
    reducedMotion: 'reduce',
  })
  const tab = await context.newPage()
  await tab.goto(await Promise.race([link, failed]))
  await tab.locator('.card').first().waitFor()
  if (of === 'live') {
    await tab.locator('.card a').first().click()
    await tab.locator('.row').first().waitFor()
  }
  // Where this machine keeps the project is nobody's concern.
  await tab.locator('.where').evaluateAll(all => {
    for (const each of all) each.textContent = (each.textContent ?? '').replace(/\/\S*codemachine-test-\w{6}/, '~')
  })
  await delay(SETTLE_MS)
  return await tab.screenshot()
}

function draw(seen: Emulator, { size, scheme }: Take, { label, part }: Shot): string {
  const { columns, rows } = size
  const shown = seen.screen()
  const from = part?.[0]
  const first = from ? shown.findLastIndex(row => from.test(row)) : 0
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
