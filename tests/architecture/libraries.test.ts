import { globSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'
import { codemachine } from '../support/codemachine.ts'
import { openRealScene } from '../support/real-scene.ts'
import { claimDone, round } from '../support/rounds.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The files of `src` that load a library at once, not only types of it, when they are loaded themselves. */
function importersOf(library: string): string[] {
  return globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).filter(path => {
    const { module } = parseSync(path, readFileSync(join(ROOT, path), 'utf8'))
    return module.staticImports.some(
      ({ moduleRequest, entries }) =>
        moduleRequest.value === library && (entries.length === 0 || entries.some(({ isType }) => !isType)),
    )
  })
}

test('what reads the environment while it is loaded is imported by the two entry points alone', () => {
  expect(importersOf('xdg-basedir').sort()).toEqual(['src/doors/cli/entry.ts', 'src/index.ts'])
})

test('execa is imported where it runs a program, and by no file at once', () => {
  expect(importersOf('execa')).toEqual([])
})

test('no file of the bundle imports a module of Node: an import loads all that the module can have loaded', () => {
  const files = globSync('dist/*.js', { cwd: ROOT })
  expect(files).toContain('dist/entry.js')
  const imported = files.flatMap(file => {
    const { module } = parseSync(file, readFileSync(join(ROOT, file), 'utf8'))
    return module.staticImports.map(({ moduleRequest }) => moduleRequest.value).filter(isBuiltin)
  })
  expect(imported).toEqual([])
})

test('no file of the bundle evaluates a text: the names of one that does could not be shortened', () => {
  const evaluating: string[] = []
  for (const file of globSync('dist/*.js', { cwd: ROOT })) {
    const { program } = parseSync(file, readFileSync(join(ROOT, file), 'utf8'))
    const visitor = new Visitor({
      CallExpression({ callee }) {
        if (callee.type === 'Identifier' && callee.name === 'eval') evaluating.push(file)
      },
    })
    visitor.visit(program)
  }
  expect(evaluating).toEqual([])
})

test('what writes the report is loaded while a claim is proved, and the end does not wait for it', async () => {
  await using scene = await openRealScene([round(claimDone)])
  const { place } = scene
  const [recorder, log] = [join(place.root, 'recorder.mjs'), join(place.root, 'loaded')]
  await writeFile(recorder, RECORDER)
  await writeFile(log, '')
  // On the claim, it passes once the page is there.
  const gate = [
    `grep -rqF '"type":"done-nominated"' '${place.home}/.codemachine/state' || exit 0`,
    `for i in $(seq 200); do grep -q /page- '${log}' && exit 0; sleep 0.05; done; exit 1`,
  ].join('; ')
  const env = { LOADED: log, NODE_OPTIONS: `--import ${pathToFileURL(recorder).href}` }
  const ended = await codemachine(place, ['--no-keep-awake', '--verify', gate, 'build X'], { env })
  expect(ended).toMatchObject({ exitCode: 0 })
})

/** Tells of every module that a process and what it starts load. */
const RECORDER = `
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
registerHooks({
  load(url, context, next) {
    appendFileSync(process.env.LOADED, url + '\\n')
    return next(url, context)
  },
})
`

test('a run and --version load few files, and not execa; what is no part of a round does', async () => {
  const dist = join(ROOT, 'dist')
  const chunks = readdirSync(dist).filter(
    name => name.endsWith('.js') && readFileSync(join(dist, name), 'utf8').includes('isGracefullyCanceled'),
  )
  expect(chunks.length).toBeGreaterThan(0)
  await using scene = await openRealScene([round(claimDone), round(claimDone)])
  const { place } = scene
  const recorder = join(place.root, 'recorder.mjs')
  await writeFile(recorder, RECORDER)
  const loadedBy = async (name: string, ends: number, ...args: string[]) => {
    const log = join(place.root, name)
    await writeFile(log, '')
    const env = { LOADED: log, NODE_OPTIONS: `--import ${pathToFileURL(recorder).href}` }
    const { exitCode, stderr } = await codemachine(place, args, { env })
    expect({ exitCode, stderr }).toMatchObject({ exitCode: ends })
    return readFileSync(log, 'utf8')
      .split('\n')
      .map(url => url.slice(url.lastIndexOf('/') + 1))
  }
  const ofExeca = (modules: readonly string[]) => modules.filter(name => chunks.includes(name))
  const run = await loadedBy('run', 0, '--no-keep-awake', 'build X')
  expect(run).toContain('entry.js')
  expect(ofExeca(run)).toEqual([])
  expect(run.filter(name => /^chunk-/.test(name)).length).toBeLessThan(25)
  const version = await loadedBy('version', 0, '--version')
  expect(version).toContain('bin.js')
  expect(ofExeca(version)).toEqual([])
  expect(ofExeca(await loadedBy('land', 2, 'land'))).not.toEqual([])
})
