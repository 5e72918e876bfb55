import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { expect, onTestFinished, test } from 'vitest'
import { readWithoutFile, thirdParty, type WithoutFile } from '../../scripts/third-party.ts'

const NOBODY: WithoutFile = { packages: {}, texts: { MIT: 'MIT\n\nCopyright (c) {holder}' } }

/** What is said of a bundle of a program that imports the packages; `files` are those of all, by path. */
async function bundled(packages: readonly string[], files: Record<string, string>, known = NOBODY) {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'bundle-')))
  onTestFinished(() => rm(root, { recursive: true }))
  const all = {
    'package.json': '{ "name": "program", "version": "1.0.0" }',
    'main.js': packages.map(name => `import '${name}'`).join('\n'),
    ...Object.fromEntries(Object.entries(files).map(([path, text]) => [`node_modules/${path}`, text])),
  }
  for (const [path, text] of Object.entries(all)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['main.js'],
    outdir: 'dist',
    bundle: true,
    write: false,
    metafile: true,
  })
  return thirdParty(metafile, root, known)
}

/** A package's manifest and its one module. */
function files(name: string, licence = 'MIT', more: Record<string, string> = {}): Record<string, string> {
  const manifest = JSON.stringify({ name, version: '1.2.3', license: licence, main: 'lib/index.js' })
  return Object.fromEntries(
    Object.entries({ 'package.json': manifest, 'lib/index.js': `console.log('${name}')`, ...more }).map(
      ([path, text]) => [`${name}/${path}`, text],
    ),
  )
}

test('a text that two packages share stands there once, with the names of both', async () => {
  const { text, problems } = await bundled(['one', '@scope/two', 'three'], {
    ...files('one', 'MIT', { LICENSE: 'Copyright (c) Somebody  \r\n\r\nFree.\r\n' }),
    ...files('@scope/two', 'MIT', { 'license.md': 'Copyright (c) Somebody\n\nFree.' }),
    ...files('three', 'BSD-3-Clause', { COPYING: 'Copyright (c) Three' }),
    ...files('not-imported', 'MIT', { LICENSE: 'Copyright (c) Nobody' }),
  })
  expect(problems).toEqual([])
  expect(text).toContain('- @scope/two@1.2.3 (MIT)\n- one@1.2.3 (MIT)\n- three@1.2.3 (BSD-3-Clause)\n')
  expect(text).toContain('\n@scope/two@1.2.3\none@1.2.3\n\nCopyright (c) Somebody\n\nFree.\n')
  expect(text.match(/Somebody/g)).toHaveLength(1)
  expect(text).toContain('\nthree@1.2.3\n\nCopyright (c) Three\n')
  expect(text).not.toMatch(/Nobody|program/)
})

test('notices, and licences of what a package has from elsewhere, are handed on; code that is called so is not', async () => {
  const { text } = await bundled(['one'], {
    ...files('one', 'Apache-2.0', {
      'LICENCE.txt': 'Apache',
      NOTICE: 'made at One',
      'licenses/LICENSE-d3': 'Copyright D3',
      'licenses/more/x': 'Copyright X',
      'lib/package.json': '{ "type": "commonjs" }',
      'lib/LICENSE': 'Copyright inside',
      'lib/license.js': 'a program',
    }),
  })
  for (const part of [
    'Apache',
    'NOTICE:\n\nmade at One',
    'licenses/LICENSE-d3:\n\nCopyright D3',
    'Copyright X',
    'inside',
  ])
    expect(text).toContain(part)
  expect(text).not.toContain('a program')
})

test('a package without a licence file is named, a notice being none, until it is in the list', async () => {
  const one = files('one', 'MIT', { NOTICE: 'made at One', 'licenses/LICENSE-d3': 'Copyright D3' })
  expect((await bundled(['one'], one)).problems).toEqual([
    expect.stringMatching(/^one@1\.2\.3 \(MIT\) has no licence file/),
  ])
  const entry = { licence: 'MIT', holder: 'One Ltd', source: '' }
  const { text, problems } = await bundled(['one'], one, { ...NOBODY, packages: { one: entry } })
  expect(problems).toEqual([])
  expect(text).toContain('one@1.2.3\n\nMIT\n\nCopyright (c) One Ltd\n')
})

test('an entry of the list that is no longer true is named', async () => {
  const known = { ...NOBODY, packages: { one: { licence: 'MIT', holder: 'One Ltd', source: '' } } }
  const problems = async (...of: Parameters<typeof bundled>) => (await bundled(...of)).problems
  expect(await problems(['one'], files('one', 'MIT', { LICENSE: 'MIT' }), known)).toEqual([
    expect.stringContaining('has a licence file now'),
  ])
  expect(await problems([], files('one'), known)).toEqual([expect.stringContaining('no longer in the bundle')])
  expect(await problems(['one'], files('one', 'ISC'), known)).toEqual([
    expect.stringContaining('is under ISC, and not under MIT'),
  ])
  expect(await problems(['one'], files('one'), { ...known, texts: {} })).toEqual([
    expect.stringContaining('scripts/licences/MIT.txt'),
  ])
})

test('the list in the repository says of each package who holds its copyright, and where that is said', () => {
  const { packages, texts } = readWithoutFile()
  expect(Object.keys(packages)).not.toEqual([])
  for (const { licence, holder, source } of Object.values(packages)) {
    expect(texts[licence]).toContain('{holder}')
    expect(holder).not.toBe('')
    expect(source).not.toBe('')
  }
})
