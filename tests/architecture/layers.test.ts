import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The layers, the lowest first, and what each may use beside itself. docs/design.md draws the same. */
const LAYERS: Record<string, readonly string[]> = {
  base: [],
  protocol: [],
  platform: ['base'],
  settings: ['base', 'platform'],
  secrets: ['base', 'platform'],
  workspace: ['base', 'platform'],
  codex: ['base', 'platform', 'protocol', 'session-types'],
  session: ['base', 'platform', 'workspace'],
  engines: ['base', 'platform', 'codex', 'session-types'],
  templates: ['base', 'workspace', 'session-types'],
  ui: ['base', 'session-types'],
  notify: ['base', 'platform', 'session-types', 'ui'],
  report: ['base', 'platform', 'workspace', 'session', 'session-types', 'ui'],
  agents: ['base', 'platform', 'workspace', 'session-types'],
  demo: ['base'],
  cli: [
    'base',
    'platform',
    'secrets',
    'settings',
    'workspace',
    'codex',
    'session',
    'session-types',
    'engines',
    'templates',
    'agents',
    'ui',
    'notify',
    'report',
    'demo',
  ],
  entry: ['base'],
}

/** What of `session` others build on: data, and decisions without a clock, file or process. */
const PURE_SESSION = [
  'after-round',
  'ask-person',
  'build-events',
  'build-state',
  'certificate',
  'claim-events',
  'command',
  'done-rule',
  'ends-plan-change',
  'engine',
  'events',
  'failures',
  'file-events',
  'flaky-gate',
  'fold',
  'fold-build',
  'fold-claim',
  'fold-files',
  'fold-lifecycle',
  'fold-proof',
  'fold-round',
  'gate',
  'hand-over',
  'holding',
  'items',
  'lifecycle-events',
  'limits',
  'live-events',
  'machine-slept',
  'next-proof',
  'notices',
  'outcome',
  'person-said',
  'project-file',
  'review',
  'round-events',
  'run-agent-tool',
  'said',
  'session-tokens',
  'stall',
  'standing',
  'state',
  'tasks-named',
  'template',
  'token-counts',
  'view',
]

interface Arrow {
  from: string
  to: string
}

function arrowsOf(path: string): Arrow[] {
  const { module } = parseSync(path, readFileSync(join(ROOT, path), 'utf8'))
  const requests = [
    ...module.staticImports.map(each => each.moduleRequest.value),
    ...module.staticExports.flatMap(each => each.entries.flatMap(entry => entry.moduleRequest?.value ?? [])),
    ...module.dynamicImports.map(each =>
      readFileSync(join(ROOT, path), 'utf8').slice(each.moduleRequest.start + 1, each.moduleRequest.end - 1),
    ),
  ]
  return requests.map(to => ({
    from: path,
    to: to.startsWith('.') ? relative(ROOT, join(ROOT, dirname(path), to)) : to,
  }))
}

function layerOf(path: string): string {
  if (path.startsWith('protocol/')) return 'protocol'
  const [, folder, file] = path.split('/')
  if (file === undefined) return 'entry'
  if (folder === 'session' && isPure(path)) return 'session-types'
  return folder ?? ''
}

function isPure(path: string): boolean {
  return PURE_SESSION.some(name => path === `src/session/${name}.ts`)
}

const files = globSync(['src/**/*.{ts,tsx}', 'protocol/*.ts'], { cwd: ROOT })
const arrows = files.flatMap(arrowsOf)
const shown = ({ from, to }: Arrow) => `${from} uses ${to}`

test('every layer uses only what lies below it', () => {
  const ours = arrows.filter(({ to }) => to.startsWith('src/') || to.startsWith('protocol/'))
  expect(ours.length).toBeGreaterThan(100)
  const wrong = ours.filter(({ from, to }) => {
    const [layer, used] = [layerOf(from), layerOf(to)]
    if (layer === 'session-types') return !['session-types', 'base', 'workspace'].includes(used)
    return layer !== used && !(layer === 'session' && used === 'session-types') && !LAYERS[layer]?.includes(used)
  })
  expect(wrong.map(shown)).toEqual([])
})

test('what is pure of a session uses no clock, file or process', () => {
  const wrong = arrows.filter(({ from, to }) => layerOf(from) === 'session-types' && to.startsWith('node:'))
  expect(wrong.map(shown)).toEqual([])
})

test('only the entry point and the build know the process and the console', () => {
  const wrong = files.filter(path => {
    if (path === 'src/bin.ts' || path === 'src/cli/entry.ts') return false
    // The demo's sources are texts that its agent writes.
    if (path === 'src/demo/demo-sources.ts') return false
    const text = readFileSync(join(ROOT, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    return /(?<![.\w])process\.(env|argv|stdout|stderr|stdin|exit|on|cwd|versions|execPath)\b|(?<![.\w])console\./.test(
      text,
    )
  })
  expect(wrong).toEqual([])
})

test('no module leads back to itself', () => {
  const uses = Map.groupBy(
    arrows.filter(({ to }) => to.startsWith('src/')),
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
  for (const path of files) visit(path, [])
  expect([...circles]).toEqual([])
})
