import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'
import { OWN_TEMPLATES } from '../../src/templates/registry.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The layers, the lowest first, and the layers that each may import from. docs/design.md draws the same. */
const LAYERS: Record<string, readonly string[]> = {
  base: [],
  protocol: [],
  platform: ['base'],
  core: ['base'],
  secrets: ['base', 'platform', 'core'],
  settings: ['base', 'platform', 'core'],
  workspace: ['base', 'platform', 'core'],
  records: ['base', 'platform', 'core'],
  engines: ['base', 'platform', 'core', 'protocol'],
  flow: ['base', 'platform', 'core', 'workspace'],
  templates: ['base', 'core', 'flow'],
  words: ['base', 'core'],
  run: ['base', 'platform', 'core', 'workspace', 'records'],
  agents: ['base', 'platform', 'core', 'workspace'],
  report: ['base', 'platform', 'core', 'records', 'words', 'workspace'],
  notify: ['base', 'platform', 'core', 'words'],
  app: [
    'base',
    'platform',
    'secrets',
    'settings',
    'core',
    'workspace',
    'records',
    'run',
    'flow',
    'templates',
    'agents',
    'engines',
    'words',
    'report',
    'notify',
  ],
  tui: ['base', 'platform', 'core', 'words', 'app', 'settings', 'records', 'workspace', 'report'],
  web: ['base', 'platform', 'core', 'words', 'app', 'settings', 'records', 'workspace', 'report'],
  mcp: ['base', 'platform', 'core', 'words', 'app', 'settings', 'records', 'workspace', 'report'],
  fleet: [
    'base',
    'platform',
    'core',
    'flow',
    'templates',
    'words',
    'app',
    'settings',
    'records',
    'workspace',
    'report',
  ],
  cli: [
    'base',
    'platform',
    'settings',
    'core',
    'workspace',
    'records',
    'engines',
    'flow',
    'templates',
    'agents',
    'words',
    'report',
    'app',
    'tui',
    'web',
    'mcp',
    'fleet',
    'demo',
  ],
  demo: ['base'],
  'bin.ts': ['start.ts'],
  'codex-flow.ts': ['start.ts'],
  'start.ts': ['base', 'cli'],
  'index.ts': ['base', 'core', 'engines', 'templates', 'report', 'app'],
}

/** Where a session of a template is carried out: loaded when one is, and what it imports beside its layer. */
const EFFECTS = /^src\/templates\/[^/]+\/effects\.ts$/
const LAYERS_OF_EFFECTS = ['agents', 'workspace']

/** Which templates there are, and the only file that knows their folders. */
const REGISTRY = 'src/templates/registry.ts'
/** Where a template is named beside its folder and the registry: a setting's values, the command line, the commands of the screen, and what is shown of codemachine. */
const NAME_TEMPLATES = [
  'src/settings/schema.ts',
  'src/cli/program.ts',
  'src/cli/program/parts.ts',
  'src/cli/commands/demo.ts',
  'src/cli/commands/flow.ts',
  'src/cli/program/change.ts',
  'src/cli/help.ts',
  'src/cli/program/team.ts',
  'src/app/change/',
  'src/app/flow/',
  'src/app/team/',
  'src/tui/host/',
  'src/tui/composer/completion.ts',
  'src/demo/',
]
/**
 * Where such a word is not the name of a template but a label, or the name of a prompt: the goal of a session, what a person
 * chooses of a plan, changes that are counted, a command that builds, a key of a file.
 */
const LABELS = [
  'src/report/card.ts',
  'src/templates/flow/effects.ts',
  'src/core/state/plan.ts',
  'src/core/contracts/context.ts',
  'src/workspace/context/',
  'src/app/worktrees/land.ts',
  'src/app/start/worktree.ts',
  'src/fleet/submission.ts',
  'src/fleet/night.ts',
  'src/cli/commands/fleet/submit.ts',
]

/** Where the process comes in: the program, the command line, and what `import … from 'codemachine'` gives. */
const DOORS = ['src/start.ts', 'src/cli/entry.ts', 'src/index.ts']

/** The most lines of the door to import: it hands on, and does nothing. */
const MOST_LINES_OF_INDEX = 60

/** The layer that touches nothing: no clock, file or process. */
const PURE = ['core']

/** Folders that hide something: at most two thirds of their files are imported from outside. */
const ROOMS = ['run', 'engines/codex', 'report', 'notify', 'app/doctor', 'tui/host', 'demo']

/** The largest file, and the largest function, in lines. */
const MOST_LINES = 500
const MOST_LINES_OF_FUNCTION = 80
/** The most files of one folder, its subfolders not counted. */
const MOST_FILES = 16
/** A file of fewer lines needs users in three folders, or to be loaded only when it is wanted. */
const LEAST_LINES = 60
/** The two doors; which engines there are; what a template is. */
const NO_SLIVERS = [
  'src/bin.ts',
  'src/codex-flow.ts',
  'src/start.ts',
  'src/index.ts',
  'src/web/http-ece.d.ts',
  'src/web/page/sw.ts',
  'src/engines/registry.ts',
  'src/templates/goal/goal.ts',
]

interface Arrow {
  from: string
  to: string
  kind: 'value' | 'type' | 'lazy'
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
  return {
    path,
    lines: text.split('\n').length - 1,
    arrows: [
      ...module.staticImports.map(({ moduleRequest, entries }) => ({
        from: path,
        to: to(moduleRequest.value),
        kind: entries.length > 0 && entries.every(({ isType }) => isType) ? ('type' as const) : ('value' as const),
      })),
      ...module.staticExports.flatMap(({ entries }) =>
        entries.flatMap(({ moduleRequest, isType }) =>
          moduleRequest === null
            ? []
            : [{ from: path, to: to(moduleRequest.value), kind: isType ? ('type' as const) : ('value' as const) }],
        ),
      ),
      ...module.dynamicImports.map(({ moduleRequest: { start, end } }) => ({
        from: path,
        to: to(text.slice(start + 1, end - 1)),
        kind: 'lazy' as const,
      })),
    ],
  }
}

function layerOf(path: string): string {
  const [top = '', layer = ''] = path.split('/')
  return top === 'protocol' ? 'protocol' : layer
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
    const more = EFFECTS.test(from) ? LAYERS_OF_EFFECTS : []
    return layer !== used && !LAYERS[layer]?.includes(used) && !more.includes(used)
  })
  expect(wrong.map(shown)).toEqual([])
})

test('a template is known by the registry alone, and what carries it out is loaded when it is wanted', () => {
  const ofTemplate = (path: string) => /^src\/templates\/[^/]+\//.exec(path)?.[0] ?? null
  const known = arrows.filter(({ from, to }) => ofTemplate(to) !== null && ofTemplate(from) !== ofTemplate(to))
  expect(known).toHaveLength(OWN_TEMPLATES.size)
  const wrong = arrows.filter(
    ({ from, to, kind }) =>
      (ofTemplate(to) !== null && ofTemplate(from) !== ofTemplate(to) && from !== REGISTRY) ||
      (EFFECTS.test(to) && kind !== 'lazy'),
  )
  expect(wrong.map(shown)).toEqual([])
})

test('no template is named but by itself, the registry, a setting, the command line and the demo', () => {
  // What a call is named after is a word of this house for other things, too.
  const names = new Set([...OWN_TEMPLATES.values()].flatMap(({ name, isCall }) => (isCall ? [] : [name])))
  const mayName = (path: string, name: string) =>
    [`src/templates/${name}/`, REGISTRY, ...NAME_TEMPLATES, ...LABELS].some(each => path.startsWith(each))
  const hint = new RegExp(`['"\`](${[...names].join('|')})['"\`]`)
  const named = ours
    .filter(({ path }) => hint.test(codeOf(path)))
    .flatMap(({ path }) => textsOf(path).map(({ text, line }) => ({ path, text, line })))
    .filter(({ text }) => names.has(text))
  for (const name of names) {
    expect(named).toContainEqual({ path: `src/templates/${name}/${name}.ts`, text: name, line: expect.any(Number) })
  }
  const wrong = named.filter(({ path, text }) => !mayName(path, text))
  expect(wrong.map(({ path, text, line }) => `${path}:${line}: ${text}`)).toEqual([])
})

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

test('the application, and all below it, has no terminal', () => {
  const below = new Set(['app', ...(LAYERS.app ?? [])])
  const files = ours.filter(({ path }) => below.has(layerOf(path)))
  expect(files.length).toBeGreaterThan(100)
  const imported = arrows.filter(
    ({ from, to }) =>
      below.has(layerOf(from)) && /^(ink|react|commander|node:(tty|readline)|src\/(tui|cli)\/.*)(\/|$)/.test(to),
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

test('no file needs itself, by way of others, while it is loaded', () => {
  const uses = Map.groupBy(
    arrows.filter(({ to, kind }) => to.startsWith('src/') && kind === 'value'),
    ({ from }) => from,
  )
  const circles = new Set<string>()
  const done = new Set<string>()
  const visit = (path: string, way: readonly string[]) => {
    const at = way.indexOf(path)
    if (at !== -1) circles.add(way.slice(at).concat(path).join(' → '))
    if (at !== -1 || done.has(path)) return
    for (const { to } of uses.get(path) ?? []) visit(to, [...way, path])
    done.add(path)
  }
  for (const { path } of ours) visit(path, [])
  expect([...circles]).toEqual([])
})

test('no file is too long to be read', () => {
  expect(ours.filter(({ lines }) => lines > MOST_LINES).map(({ path, lines }) => `${path}: ${lines}`)).toEqual([])
})

test('no function is too long to be read', () => {
  const long = ours.flatMap(({ path }) =>
    functionsOf(path)
      .filter(({ lines }) => lines > MOST_LINES_OF_FUNCTION)
      .map(({ line, lines }) => `${path}:${line}: ${lines}`),
  )
  expect(long).toEqual([])
})

/** The functions of a file: the line where each begins, and how many lines it has. */
function functionsOf(path: string): { line: number; lines: number }[] {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const linesOf = (part: string) => part.split('\n').length
  const found: { line: number; lines: number }[] = []
  const add = ({ start, end }: { start: number; end: number }) => {
    found.push({ line: linesOf(text.slice(0, start)), lines: linesOf(text.slice(start, end)) })
  }
  new Visitor({ FunctionDeclaration: add, FunctionExpression: add, ArrowFunctionExpression: add }).visit(
    parseSync(path, text).program,
  )
  return found
}

test('no file is a sliver', () => {
  const slivers = ours.filter(({ path, lines }) => {
    if (lines >= LEAST_LINES || NO_SLIVERS.includes(path)) return false
    const own = users.get(path) ?? []
    return new Set(own.map(({ from }) => folderOf(from))).size < 3 && !own.some(({ kind }) => kind === 'lazy')
  })
  expect(slivers.map(({ path, lines }) => `${path}: ${lines}`)).toEqual([])
})

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

test('no folder is a drawer', () => {
  const full = [...Map.groupBy(ours, ({ path }) => folderOf(path))].filter(([, files]) => files.length > MOST_FILES)
  expect(full.map(([folder, files]) => `${folder}: ${files.length}`)).toEqual([])
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
  expect(lists).toEqual(['src/core/contracts/sandbox.ts'])
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
