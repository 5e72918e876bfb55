import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The layers, the lowest first, and the layers that each may import from. docs/design.md draws the same. */
const LAYERS: Record<string, readonly string[]> = {
  base: [],
  protocol: [],
  platform: ['base'],
  core: ['base'],
  secrets: ['base', 'platform', 'core'],
  workspace: ['base', 'platform', 'core'],
  engines: ['base', 'platform', 'core', 'protocol'],
  agents: ['base', 'platform', 'core', 'workspace'],
  session: ['base', 'platform', 'core', 'secrets', 'workspace'],
  tell: ['base', 'platform', 'core', 'workspace', 'session'],
  project: ['base', 'platform', 'core', 'secrets', 'workspace', 'engines', 'agents', 'session', 'tell'],
  modes: ['base', 'platform', 'core', 'secrets', 'workspace', 'engines', 'agents', 'session', 'tell', 'project'],
  'doors/screen': ['base', 'platform', 'core', 'secrets', 'workspace', 'session', 'tell', 'project', 'modes'],
  'doors/page': ['base', 'platform', 'core', 'secrets', 'workspace', 'session', 'tell', 'project'],
  'doors/mcp': ['base', 'platform', 'core', 'secrets', 'workspace', 'session', 'tell', 'project', 'modes'],
  fleet: ['base', 'platform', 'core', 'workspace', 'session', 'tell', 'project', 'modes'],
  'doors/cli': [
    'base',
    'platform',
    'core',
    'secrets',
    'workspace',
    'engines',
    'agents',
    'session',
    'tell',
    'project',
    'modes',
    'doors/screen',
    'doors/page',
    'doors/mcp',
    'fleet',
    'demo',
  ],
  demo: ['base'],
  'bin.ts': ['start.ts'],
  'codex-flow.ts': ['start.ts'],
  'start.ts': ['base', 'doors/cli'],
  'index.ts': ['base', 'core', 'engines', 'session', 'tell', 'project', 'modes'],
}

/** Where a session of a template is carried out: loaded when one is. */
const EFFECTS = /^src\/modes\/[^/]+\/effects\.ts$/

/** Which templates there are, and the only file that knows their folders. */
const REGISTRY = 'src/modes/registry.ts'
/** Where a template is named beside its folder and the registry: a setting's values, the command line, the commands of the screen, and what is shown of codemachine. */
const NAME_TEMPLATES = [
  'src/project/settings/schema.ts',
  'src/doors/cli/program.ts',
  'src/doors/cli/program/parts.ts',
  'src/doors/cli/commands/demo.ts',
  'src/doors/cli/commands/run.ts',
  'src/doors/cli/change/program.ts',
  'src/doors/cli/help.ts',
  'src/doors/cli/team/program.ts',
  'src/modes/change/start/',
  'src/modes/flow/start/',
  'src/modes/team/start/',
  'src/doors/screen/host/',
  'src/demo/',
]
/**
 * Where such a word is not the name of a template but a label, or the name of a prompt: the goal of a session, what a person
 * chooses of a plan, changes that are counted, a command that builds, a key of a file.
 */
const LABELS = [
  'src/tell/report/card.ts',
  'src/modes/flow/effects.ts',
  'src/core/state/plan.ts',
  'src/core/shapes/context.ts',
  'src/modes/change/context/gather.ts',
  'src/workspace/context/commands.ts',
  'src/project/worktrees/land.ts',
  'src/project/start/worktree.ts',
  'src/fleet/submission.ts',
  'src/fleet/night.ts',
  'src/doors/cli/fleet/submit.ts',
]

/** Where the process comes in: the program, the command line, and what `import … from '@codemachine/cli'` gives. */
const DOORS = ['src/start.ts', 'src/doors/cli/entry.ts', 'src/index.ts']

/** The most lines of the door to import: it hands on, and does nothing. */
const MOST_LINES_OF_INDEX = 60

/** Where something is told by the platform outside of `src/platform`: programs for it, or what is missing on it. */
const TOLD_BY_PLATFORM = [
  'src/doors/cli/entry.ts',
  'src/doors/screen/host/screen-home.ts',
  'src/doors/screen/terminal/ascii.ts',
  'src/engines/acp/acp-engine.ts',
  'src/engines/codex/find-codex.ts',
  'src/engines/codex/sandbox/try-sandbox.ts',
  'src/engines/codex/shell/open-shell.ts',
  'src/project/doctor/checks.ts',
  'src/project/doctor/codex.ts',
  'src/session/records/run-lock.ts',
]

/** The layer that touches nothing: no clock, file or process. */
const PURE = ['core']

/** Folders that hide something: at most two thirds of their files are imported from outside. */
const ROOMS = ['session', 'engines', 'tell/report', 'tell/notify', 'project/doctor', 'doors/screen/host', 'demo']

interface Arrow {
  from: string
  to: string
  /** Whether it is loaded when it is wanted. */
  isLazy: boolean
}

interface Source {
  path: string
  lines: number
  arrows: Arrow[]
}

const sources = globSync(['src/**/*.{ts,tsx}', 'protocol/*.ts'], { cwd: ROOT }).map(readSource)
const ours = sources.filter(({ path }) => path.startsWith('src/'))
const arrows = sources.flatMap(each => each.arrows)
const users = Map.groupBy(arrows, ({ to }) => to)

function readSource(path: string): Source {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const { module } = parseSync(path, text)
  const to = (request: string) =>
    request.startsWith('.') ? relative(ROOT, join(ROOT, dirname(path), request)) : request
  const arrow = (to: string, isLazy = false): Arrow => ({ from: path, to, isLazy })
  return {
    path,
    lines: text.split('\n').length - 1,
    arrows: [
      ...module.staticImports.map(({ moduleRequest }) => arrow(to(moduleRequest.value))),
      ...module.staticExports.flatMap(({ entries }) =>
        entries.flatMap(({ moduleRequest }) => (moduleRequest === null ? [] : [arrow(to(moduleRequest.value))])),
      ),
      ...module.dynamicImports.map(({ moduleRequest: { start, end } }) =>
        arrow(to(text.slice(start + 1, end - 1)), true),
      ),
    ],
  }
}

function layerOf(path: string): string {
  const [top = '', layer = '', door = ''] = path.split('/')
  if (top === 'protocol') return top
  return layer === 'doors' ? `${layer}/${door}` : layer
}

/** The text of a file without its comments. */
function codeOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
}

const folderOf = (path: string) => dirname(relative('src', path))
const shown = ({ from, to }: Arrow) => `${from} imports ${to}`

test('every layer imports only from the layers below it', () => {
  const inside = arrows.filter(({ to }) => to.startsWith('src/') || to.startsWith('protocol/'))
  expect(inside.length).toBeGreaterThan(1000)
  const wrong = inside.filter(({ from, to }) => {
    const [layer, used] = [layerOf(from), layerOf(to)]
    return layer !== used && !LAYERS[layer]?.includes(used)
  })
  expect(wrong.map(shown)).toEqual([])
})

test('a template is known by the registry alone, and what carries it out is loaded when it is wanted', () => {
  const modeOf = (path: string) => /^src\/modes\/[^/]+\//.exec(path)?.[0] ?? null
  // How one starts is for the doors, too.
  const ofTemplate = (path: string) => (dirname(dirname(path)) === 'src/modes' ? modeOf(path) : null)
  const known = arrows.filter(({ from, to }) => ofTemplate(to) !== null && modeOf(from) !== ofTemplate(to))
  expect(known).toHaveLength(OWN_TEMPLATES.size)
  const wrong = arrows.filter(
    ({ from, to, isLazy }) =>
      (ofTemplate(to) !== null && modeOf(from) !== ofTemplate(to) && from !== REGISTRY) ||
      (EFFECTS.test(to) && !isLazy),
  )
  expect(wrong.map(shown)).toEqual([])
})

test('no mode imports from the folder of another', () => {
  const modeOf = (path: string) => /^src\/modes\/([^/]+)\//.exec(path)?.[1] ?? null
  const wrong = arrows.filter(({ from, to }) => {
    const [one, other] = [modeOf(from), modeOf(to)]
    return one !== null && other !== null && one !== other
  })
  expect(wrong.map(shown)).toEqual([])
})

test('no template is named but by itself, the registry, a setting, the command line and the demo', () => {
  // What a call is named after is a word of this house for other things, too.
  const names = new Set([...OWN_TEMPLATES.values()].flatMap(({ name, isCall }) => (isCall ? [] : [name])))
  const mayName = (path: string, name: string) =>
    [`src/modes/${folderOfMode(name)}/`, REGISTRY, ...NAME_TEMPLATES, ...LABELS].some(each => path.startsWith(each))
  const hint = new RegExp(`['"\`](${[...names].join('|')})['"\`]`)
  const named = ours
    .filter(({ path }) => hint.test(codeOf(path)))
    .flatMap(({ path }) => textsOf(path).map(({ text, line }) => ({ path, text, line })))
    .filter(({ text }) => names.has(text))
  for (const name of names) {
    expect(named).toContainEqual({
      path: `src/modes/${folderOfMode(name)}/${name}.ts`,
      text: name,
      line: expect.any(Number),
    })
  }
  const wrong = named.filter(({ path, text }) => !mayName(path, text))
  expect(wrong.map(({ path, text, line }) => `${path}:${line}: ${text}`)).toEqual([])
})

/** Tools take a folder called `build` for output. */
const folderOfMode = (name: string) => (name === 'build' ? 'from-specification' : name)

/** The whole texts in a file, of values and of types, and the line of each. The names of fields in `Pick` and `Omit` are none. */
function textsOf(path: string): { text: string; line: number }[] {
  const code = readFileSync(join(ROOT, path), 'utf8')
  const found: { text: string; start: number }[] = []
  const fields: { start: number; end: number }[] = []
  new Visitor({
    Literal: ({ value, start }) => {
      if (typeof value === 'string') found.push({ text: value, start })
    },
    TemplateElement: ({ value, start }) => {
      found.push({ text: value.cooked ?? value.raw, start })
    },
    TSTypeReference: ({ typeName, start, end }) => {
      if (typeName.type === 'Identifier' && /^(Pick|Omit)$/.test(typeName.name)) fields.push({ start, end })
    },
    TSInterfaceHeritage: ({ expression, start, end }) => {
      if (expression.type === 'Identifier' && /^(Pick|Omit)$/.test(expression.name)) fields.push({ start, end })
    },
  }).visit(parseSync(path, code).program)
  return found
    .filter(({ start }) => !fields.some(field => field.start <= start && start < field.end))
    .map(({ text, start }) => ({ text, line: code.slice(0, start).split('\n').length }))
}

test('the map names each layer, and only what is there', () => {
  const map = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8')
  const folders = [...map.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name = '']) => `src/${name}`)
  const files = [...map.matchAll(/`(src\/[^`]+\.ts)`/g)].map(([, path = '']) => path)
  const layers = new Set(ours.flatMap(({ path }) => (dirname(path) === 'src' ? [] : [path.split('/', 2).join('/')])))
  expect([...layers].filter(layer => !folders.includes(layer))).toEqual([])
  expect([...folders, ...files].filter(path => !existsSync(join(ROOT, path)))).toEqual([])
})

test('what a session is imports nothing of Node', () => {
  const wrong = arrows.filter(({ from, to }) => PURE.includes(layerOf(from)) && to.startsWith('node:'))
  expect(wrong.map(shown)).toEqual([])
})

test('only the doors know the process and the console', () => {
  const wrong = ours.filter(({ path }) => {
    if (DOORS.includes(path)) return false
    return /(?<![.\w])process\.(env|argv|stdout|stderr|stdin|exit|on|cwd|versions|execPath)\b|(?<![.\w])console\./.test(
      codeOf(path),
    )
  })
  expect(wrong.map(({ path }) => path)).toEqual([])
})

test('what differs by platform is decided in one folder, which is given the platform', () => {
  const outside = ours.filter(({ path }) => layerOf(path) !== 'platform')
  const told = outside.filter(({ path }) => /'(?:win32|darwin|freebsd)'/.test(codeOf(path)))
  expect(told.map(({ path }) => path).sort()).toEqual(TOLD_BY_PLATFORM)
  const asks = (path: string) =>
    /\bprocess\.(?:platform|arch)\b|\{[^}]*\bplatform\b[^}]*\} from 'node:(?:os|process)'/.test(codeOf(path))
  expect(outside.filter(({ path }) => asks(path) && !DOORS.includes(path)).map(({ path }) => path)).toEqual([])
})

test('the application, and all below it, has no terminal', () => {
  const below = new Set(['modes', ...(LAYERS.modes ?? [])])
  const files = ours.filter(({ path }) => below.has(layerOf(path)))
  expect(files.length).toBeGreaterThan(100)
  const imported = arrows.filter(
    ({ from, to }) =>
      below.has(layerOf(from)) && /^(ink|react|commander|node:(tty|readline)|src\/doors\/.*)(\/|$)/.test(to),
  )
  const drawn = files.filter(({ path }) => {
    const text = codeOf(path)
    // What a program of ours wrote is `result.stdout`, and a text; a stream is written to, or listened at.
    return (
      /\bisTTY\b|\bsetRawMode\b|\bScreenProcess\b/.test(text) ||
      /(?<![.\w])(?:(?:world|context|process)\.)?(?:stdin|stdout|stderr)\??\.(?:write|on|once|pipe|columns|resume)\b/.test(
        text,
      )
    )
  })
  expect([...imported.map(shown), ...drawn.map(({ path }) => path)]).toEqual([])
})

test('the door to import hands on, and is short', () => {
  const index = ours.find(({ path }) => path === 'src/index.ts')
  expect(index?.lines).toBeLessThanOrEqual(MOST_LINES_OF_INDEX)
})

test('no file needs itself by way of others, not even for a type, or for what is loaded later', () => {
  expect(circlesOf(arrows)).toEqual([])
})

/** The ways from a file of ours back to itself. */
function circlesOf(used: readonly Arrow[]): string[] {
  const uses = Map.groupBy(used, ({ from }) => from)
  const circles = new Set<string>()
  const done = new Set<string>()
  const visit = (path: string, way: readonly string[]) => {
    const at = way.indexOf(path)
    if (at !== -1) circles.add(way.slice(at).concat(path).join(' → '))
    if (at !== -1 || done.has(path)) return
    for (const { to } of uses.get(path) ?? []) visit(to, [...way, path])
    done.add(path)
  }
  for (const path of uses.keys()) visit(path, [])
  return [...circles]
}

test('no file does nothing but hand on what other files of ours export', () => {
  const barrels = ours.filter(({ path, arrows: uses }) => {
    if (!uses.some(({ to }) => to.startsWith('src/'))) return false
    const { program } = parseSync(path, readFileSync(join(ROOT, path), 'utf8'))
    return (
      program.body.every(({ type }) => /^(Import|Export)\w*Declaration$/.test(type)) &&
      !program.body.some(node => 'declaration' in node && node.declaration !== null)
    )
  })
  expect(barrels.map(({ path }) => path)).toEqual([])
})

test.each(ROOMS)('%s is entered by at most two thirds of its files', room => {
  const files = ours.filter(({ path }) => folderOf(path) === room || folderOf(path).startsWith(`${room}/`))
  const entered = files.filter(({ path }) =>
    users.get(path)?.some(({ from }) => !`${folderOf(from)}/`.startsWith(`${room}/`)),
  )
  expect(files.length).toBeGreaterThan(2)
  expect(entered.length / files.length, entered.map(({ path }) => path).join('\n')).toBeLessThanOrEqual(2 / 3)
})

test('the words for what a sandbox lets an agent write are listed once, in core', () => {
  const lists = globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).filter(path =>
    /'read-only'\s*[,|]\s*'workspace-write'/.test(readFileSync(join(ROOT, path), 'utf8')),
  )
  expect(lists).toEqual(['src/core/shapes/sandbox.ts'])
})

test('what tests side by side begin is ended by themselves, or at the end of their file', () => {
  // Behind an `await`, vitest takes the test that began last for the one that asks.
  const asks = globSync('tests/**/*.test.ts', { cwd: ROOT }).filter(path => {
    const text = readFileSync(join(ROOT, path), 'utf8')
    return (
      /\/side-by-side\.ts'|\.concurrent\b/.test(text) && /^import \{[^}]*\b(?:onTest\w+|endAfterEach)\b/m.test(text)
    )
  })
  expect(asks).toEqual([])
})
