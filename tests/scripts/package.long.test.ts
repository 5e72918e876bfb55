import { cp, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { thirdParty } from '../../scripts/third-party.ts'
import { roundsScript } from '../../src/demo/model/reply.ts'
import { makePlace, type TestPlace } from '../support/place.ts'
import { promise } from '../support/promise.ts'
import { claimDone, round } from '../support/rounds.ts'
import { type ScriptedModel, startScriptedModel } from '../support/scripted-model.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What npm says, all of it; it has a home of its own and no registry. */
async function npm(place: TestPlace, folder: string, ...args: string[]): Promise<string> {
  // What the npm that runs the tests has told them of itself.
  const ours = Object.entries(place.env).filter(([name]) => !/^(npm_|init_cwd$)/i.test(name))
  const { all } = await execa('npm', args, {
    cwd: folder,
    all: true,
    extendEnv: false,
    env: {
      ...Object.fromEntries(ours),
      npm_config_userconfig: join(place.home, '.npmrc'),
      npm_config_globalconfig: join(place.home, 'npmrc'),
      npm_config_cache: join(place.home, '.npm'),
      npm_config_offline: 'true',
      npm_config_registry: 'http://127.0.0.1:9/',
      npm_config_update_notifier: 'false',
    },
  })
  return all
}

describe('the package', () => {
  let place: TestPlace
  let model: ScriptedModel
  let checkout: string
  let tarball: string
  let said: string
  let installed: string

  const program = (...args: string[]) => installedProgram('codemachine', args)
  const installedProgram = (name: string, args: readonly string[]) =>
    execa(join(place.root, 'prefix/bin', name), args, {
      cwd: place.directory,
      env: place.env,
      extendEnv: false,
    })
  const ofPackage = (path: string) => readFile(join(installed, path), 'utf8')

  beforeAll(async () => {
    model = await startScriptedModel({ script: roundsScript([round('touch a'), round(claimDone)]) })
    place = await makePlace(model.codexConfig('scripted'))
    checkout = join(place.root, 'checkout')
    await mkdir(checkout)
    for (const entry of await readdir(ROOT)) {
      if (!['.git', 'node_modules'].includes(entry))
        await cp(join(ROOT, entry), join(checkout, entry), { recursive: true })
    }
    await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'))
    // What the tests were built with: that packing builds is a test of its own, with a build that costs less.
    await npm(place, checkout, 'pack', '--ignore-scripts', '--pack-destination', place.root)
    const packed = (await readdir(place.root)).find(name => name.endsWith('.tgz'))
    tarball = join(place.root, packed ?? 'none')
    said = await npm(place, place.root, 'install', '--global', '--prefix', join(place.root, 'prefix'), tarball)
    installed = join(place.root, 'prefix/lib/node_modules', packageJson.name)
  })

  afterAll(async () => {
    await place?.[Symbol.asyncDispose]()
    await model?.[Symbol.asyncDispose]()
  })

  test('installs without a warning, and without a script of its own', async () => {
    expect(said).toMatch(/added 1 package/)
    expect(said).not.toMatch(/warn/i)
    const { scripts } = JSON.parse(await ofPackage('package.json'))
    const atInstall = ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare']
    expect(Object.keys(scripts).filter(name => atInstall.includes(name))).toEqual([])
  })

  test('is smaller than 1.7 MB', async () => {
    expect((await stat(tarball)).size).toBeLessThan(1_700_000)
  })

  test('holds nothing beyond ASCII in what runs', async () => {
    const files = (await readdir(join(installed, 'dist'))).filter(name => name.endsWith('.js'))
    const texts = await Promise.all(files.map(async name => ({ name, text: await ofPackage(join('dist', name)) })))
    expect(texts.filter(({ text }) => /[\u0080-\uffff]/.test(text)).map(({ name }) => name)).toEqual([])
  })

  promise('F31')
  test('works: its version, its help, and a session to its end', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    expect((await program('--version')).stdout).toBe(version)
    expect((await program('--help')).stdout).toContain('codemachine')
    expect((await installedProgram('codex-flow', ['--version'])).stdout).toBe(version)
    expect((await installedProgram('codex-flow', ['init'])).stdout).toContain('made  .codex-flow/flow.toml')
    const codex = join(ROOT, 'node_modules/.bin/codex')
    const session = await program('--json', '--codex-bin', codex, '--no-keep-awake', 'build X')
    expect(session.stdout).toContain('"type":"done-accepted"')
  })

  test('brings the projects that the demo plays', async () => {
    const filesIn = async (root: string) => (await readdir(join(root, 'demo'), { recursive: true })).toSorted()
    // The page at their top is for contributors.
    expect(await filesIn(installed)).toEqual((await filesIn(ROOT)).filter(name => name !== 'README.md'))
  })

  test('cannot be built while nobody has said who holds the copyright of a package without a licence file', async () => {
    const { inputs } = JSON.parse(await readFile(join(ROOT, 'dist/metafile.json'), 'utf8'))
    const { problems } = thirdParty({ inputs }, ROOT, { packages: {}, texts: {} })
    expect(problems.join('\n')).toMatch(/^@bomb\.sh\/tab@.* has no licence file.*^yoga-layout@/ms)
  })

  test('holds the licence of every package that the sources import, and of what has no licence file', async () => {
    const told = await ofPackage('dist/THIRD-PARTY.txt')
    const { peerDependencies } = JSON.parse(await ofPackage('package.json'))
    // A peer is installed by its user, and not in the package.
    const imported = (await importedPackages(join(ROOT, 'src'))).filter(name => !(name in peerDependencies))
    expect(imported).toEqual(expect.arrayContaining(['commander', 'ink', 'lowlight', 'valibot']))
    for (const name of [...imported, 'highlight.js']) {
      const folder = join(ROOT, 'node_modules', name)
      const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
      expect(told).toMatch(new RegExp(`^- ${name}@${version} \\(`, 'm'))
      for (const file of (await readdir(folder)).filter(each => /^licen[cs]e(\.\w+)?$/i.test(each)))
        expect(words(told), `${name}/${file}`).toContain(words(await readFile(join(folder, file), 'utf8')))
    }
    expect(told).toMatch(/^@bomb\.sh\/tab@.*\n\nMIT License\n\nCopyright \(c\) Bombshell Authors/m)
    expect(told).toMatch(/^yoga-layout@.*\n\nMIT License\n\nCopyright \(c\) Meta Platforms/m)
  })
})

test('`npm ci` builds in a checkout, `npm pack` builds anew, and `npm install --global .` then warns of nothing', async () => {
  await using place = await makePlace('')
  const checkout = join(place.root, 'checkout')
  await mkdir(join(checkout, 'one'), { recursive: true })
  await mkdir(join(checkout, 'scripts'))
  // Our manifest, with a dependency that needs no registry and a build that needs no dependency.
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const one = { name: 'one', version: '1.0.0' }
  await writeFile(join(checkout, 'one/package.json'), JSON.stringify(one))
  await writeFile(
    join(checkout, 'package.json'),
    JSON.stringify({ ...manifest, allowScripts: {}, devDependencies: { one: 'file:one' } }),
  )
  await writeFile(
    join(checkout, 'scripts/build.ts'),
    `import { mkdirSync, writeFileSync } from 'node:fs'
mkdirSync('dist')
writeFileSync('dist/bin.js', '#!/usr/bin/env node\\nconsole.log("built")\\n', { mode: 0o755 })
`,
  )
  await npm(place, checkout, 'install', '--package-lock-only')
  await rm(join(checkout, 'dist'), { recursive: true, force: true })
  await npm(place, checkout, 'ci')
  expect(await readdir(join(checkout, 'dist'))).toEqual(['bin.js'])
  await rm(join(checkout, 'dist'), { recursive: true })
  await npm(place, checkout, 'pack', '--pack-destination', place.root)
  expect(await readdir(join(checkout, 'dist'))).toEqual(['bin.js'])
  const prefix = join(place.root, 'prefix')
  expect(await npm(place, checkout, 'install', '--global', '--prefix', prefix, '.')).not.toMatch(/warn/i)
  expect((await execa(join(prefix, 'bin/codemachine'), { env: place.env })).stdout).toBe('built')
})

test('no text tells people to install another program that has this name in the registry', async () => {
  const told = /\b(npx|npm (exec|x)|(npm|pnpm|yarn|bun) (i|install|add|dlx|global add)( -{1,2}[\w-]+)*) codemachine\b/
  for (const right of ['npm install --global codemachine', 'npm i -g codemachine', 'npx codemachine'])
    expect(right).toMatch(told)
  const { stdout } = await execa('git', ['ls-files', '-z'], { cwd: ROOT })
  // What an earlier version has recorded stays as it was.
  const left = /^$|^tests\/scripts\/package\.long\.test\.ts$|^tests\/data\/|\.ndjson$/
  const files = stdout.split('\0').filter(path => !left.test(path))
  expect(files.length).toBeGreaterThan(100)
  const wrong: string[] = []
  for (const path of files) {
    // A file that was removed is in the index until the commit.
    const text = await readFile(join(ROOT, path), 'utf8').catch(() => '')
    if (told.test(text)) wrong.push(path)
  }
  expect(wrong).toEqual([])
})

/** The names in imports that stay at run time. */
async function importedPackages(folder: string): Promise<string[]> {
  const names = new Set<string>()
  for (const path of await readdir(folder, { recursive: true })) {
    if (!/\.tsx?$/.test(path)) continue
    const text = await readFile(join(folder, path), 'utf8')
    for (const [, name] of text.matchAll(
      /^(?:import|export) (?!type )(?:[^'";]* from )?'((?:@[\w.-]+\/)?[a-z][\w.-]*)/gm,
    )) {
      if (name && name !== 'node') names.add(name)
    }
  }
  return [...names]
}

function words(text: string): string {
  return text.replaceAll(/\uFEFF|\s+/g, ' ').trim()
}
