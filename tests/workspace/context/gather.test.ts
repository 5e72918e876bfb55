import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { gatherContext } from '../../../src/modes/change/context/gather.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'
import { workDirectoryForEach } from '../../support/work-directory.ts'

const place = workDirectoryForEach('context')

const redact = (text: string) => text.replaceAll('hunter2hunter2', '[secret PASSWORD]')

function gather(request = 'mend it', directory = place.work, signal = new AbortController().signal) {
  const gitDir = join(place.base, 'records/looks')
  return gatherContext({ directory, gitDir, env: place.environment(), redact, request, signal })
}

/** The part below a heading. */
function part(text: string, title: string): string {
  return text.split(/^## /m).find(each => each.startsWith(`${title}\n`)) ?? ''
}

test('branch, status and the last ten commits are told, and ignored files are in no tree', async () => {
  place.git('init', '--quiet', '--initial-branch', 'work')
  place.write('.gitignore', 'dist/\n')
  place.write('src/app.ts', 'export const a = 1\n')
  for (let commit = 0; commit < 12; commit += 1) place.commit()
  place.write('src/app.ts', 'export const a = 2\n')
  place.write('src/new.ts', '')
  place.write('dist/app.js', '')
  const { text, facts } = await gather()
  expect(facts).toMatchObject({ branch: 'work', dirty: 2, entries: 3 })
  expect(part(text, 'Repository')).toMatch(/Branch: `work`[\s\S]*- M `src\/app.ts`[\s\S]*- \?\? `src\/new.ts`/)
  expect(part(text, 'Repository').match(/^- [0-9a-f]{7,} \d{4}-\d\d-\d\d p: x$/gm)).toHaveLength(10)
  expect(part(text, 'Tree')).toContain(
    '3 files, without what git ignores:\n\n```text\nsrc/\n  app.ts\n  new.ts\n.gitignore\n```',
  )
})

test('in no repository ignore files count, too', async () => {
  place.write('.gitignore', 'node_modules/\n')
  place.write('node_modules/a/index.js', '')
  place.write('app.js', '')
  const { text, facts } = await gather()
  expect(facts).toMatchObject({ branch: null, dirty: 0, entries: 2 })
  expect(text).toContain('The directory is in no git repository.')
  expect(text).not.toContain('node_modules')
})

test('an empty directory, and a repository without a commit, are said to be that', async () => {
  const empty = await gather()
  expect(empty.facts.notes).toEqual([
    'The directory has no files that git does not ignore.',
    'codemachine found no command that tests or builds the project.',
  ])
  place.git('init', '--quiet', '--initial-branch', 'first')
  place.write('a.txt', '')
  const { text, facts } = await gather()
  expect(facts).toMatchObject({ branch: 'first', dirty: 1 })
  expect(text).toContain('No commit yet')
})

promise(
  'C3',
  "None of the person's git configuration runs for the context, and no secret is in it, nor a part of one that was cut off",
)
test('nothing of the person’s configuration runs: no monitor, no filter, no hook', async () => {
  place.git('init', '--quiet')
  place.write('.gitattributes', '* filter=mine diff=mine\n')
  place.write('a.txt', 'one\n')
  place.commit()
  const ran = join(place.base, 'ran')
  for (const key of ['core.fsmonitor', 'filter.mine.clean', 'filter.mine.process', 'diff.mine.textconv', 'core.pager'])
    place.git('config', key, `touch '${ran}'; false`)
  place.write('.git/hooks/post-index-change', `#!/bin/sh\ntouch '${ran}'\n`, 0o755)
  place.write('a.txt', 'two\n')
  const before = readFileSync(join(place.work, '.git/index'))
  const { facts } = await gather()
  expect(facts.dirty).toBe(1)
  expect(existsSync(ran)).toBe(false)
  expect(readFileSync(join(place.work, '.git/index'))).toEqual(before)
})

test('of a folder of a repository only its own files and changes are told', async () => {
  place.git('init', '--quiet')
  for (const path of ['a/app.ts', 'b/other.ts']) place.write(path, '')
  place.commit()
  for (const path of ['a/new.ts', 'b/new.ts']) place.write(path, '')
  const { text, facts } = await gather('mend it', join(place.work, 'a'))
  expect(facts).toMatchObject({ dirty: 1, entries: 2 })
  expect(text).toContain('- ?? `new.ts`')
  expect(text).not.toContain('other.ts')
})

test('a shallow clone has its commits, and a worktree its own branch', async () => {
  place.git('init', '--quiet')
  for (let commit = 0; commit < 3; commit += 1) place.commit()
  const clone = join(place.base, 'clone')
  place.git('clone', '--quiet', '--depth', '2', `file://${place.work}`, clone)
  expect((await gather('x', clone)).text.match(/^- [0-9a-f]{7,} /gm)).toHaveLength(2)
  const tree = join(place.base, 'tree')
  place.git('worktree', 'add', '--quiet', '-b', 'beside', tree)
  writeFileSync(join(tree, 'new.txt'), '')
  expect((await gather('x', tree)).facts).toMatchObject({ branch: 'beside', dirty: 1 })
  expect((await gather()).text.match(/^- [0-9a-f]{7,} /gm)).toHaveLength(3)
})

promise('C2')
test('pipes, links, a file of a gigabyte and a repository in the directory are named, and nothing waits for them', async () => {
  place.git('init', '--quiet')
  execFileSync('mkfifo', [join(place.work, 'pipe.ts')])
  execFileSync('mkfifo', [join(place.work, 'CLAUDE.md')])
  place.write('huge.ts', '')
  truncateSync(join(place.work, 'huge.ts'), 1024 ** 3)
  writeFileSync(join(place.base, 'outside.txt'), 'not of the project')
  symlinkSync(join(place.base, 'outside.txt'), join(place.work, '.cursorrules'))
  symlinkSync(join(place.base, 'outside.txt'), join(place.work, 'link.ts'))
  place.git('init', '--quiet', '--bare', join(place.work, 'store.git'))
  mkdirSync(join(place.work, 'inner'))
  place.gitIn(join(place.work, 'inner'), 'init', '--quiet')
  place.write('inner/app.ts', 'export const inner = 1\n')
  place.write('two\nlines.ts', '')
  const { text, facts } = await gather('see @pipe.ts, @huge.ts, @link.ts, @inner/app.ts and someName()')
  expect(text).not.toContain('not of the project')
  expect(text).toContain('### `pipe.ts` (named with @)\n\nNot read: it is not a regular file.')
  expect(text).toContain('### `huge.ts` (named with @)\n\nNot shown: 1.0 GiB.')
  expect(text).toContain('### `link.ts` (named with @)\n\nNot read: it lies outside of the project.')
  expect(text).toContain('export const inner = 1')
  expect(text).toContain('two\\nlines.ts')
  expect(facts.notes).toEqual(
    expect.arrayContaining([
      '`store.git` is a bare git repository, so codemachine did not read it.',
      'The rules in CLAUDE.md were left out: it is not a regular file.',
      'The rules in .cursorrules were left out: it lies outside of the project.',
    ]),
  )
})

test('where git would wait for its own rules, the rest is told', async () => {
  execFileSync('mkfifo', [join(place.work, '.gitignore')])
  place.write('CLAUDE.md', 'Use tabs.\n')
  const { text, facts } = await gather()
  expect(facts.notes[0]).toMatch(/^The files could not be listed: .*\.gitignore is a pipe/)
  expect(text).toContain('Use tabs.')
})

test('where git waits at a pipe deep in the tree, that is said in a few seconds, and the rest is told', async () => {
  place.git('init', '--quiet')
  place.write('CLAUDE.md', 'Use tabs.\n')
  place.write('deep/down/a.ts', '')
  execFileSync('mkfifo', [join(place.work, 'deep/down/.gitignore')])
  const from = performance.now()
  const { text, facts } = await gather()
  // git is given 15 s for a list, and 10 s for a status.
  expect(performance.now() - from).toBeLessThan(9_000)
  expect(facts.notes[0]).toMatch(/^The list of files is incomplete: .*deep\/down\/\.gitignore is a pipe/)
  expect(facts.notes).toContain('git could not list what differs from the last commit.')
  expect(text).toContain('Use tabs.')
})

promise(
  'C2',
  'The context has at most 120 KiB, each part its own bound, and nothing of it waits or is read outside of the project',
)
test('the whole has at most 120 KiB, whatever the parts would take', async () => {
  place.git('init', '--quiet')
  const large = `${'ä lot of words and `````` ticks\n'.repeat(2_000)}`
  for (const name of ['CLAUDE.md', '.cursorrules', '.github/copilot-instructions.md']) place.write(name, large)
  for (let rule = 0; rule < 10; rule += 1)
    place.write(`.cursor/rules/${rule}.mdc`, `---\nalwaysApply: true\n---\n${large}`)
  const dependencies = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`package-${index}`, '^1.0.0']))
  for (let folder = 0; folder < 20; folder += 1) {
    place.write(
      `p${folder}/package.json`,
      JSON.stringify({ name: 'x'.repeat(9_000), dependencies, scripts: dependencies }),
    )
    place.write(`p${folder}/big.ts`, large)
    for (let file = 0; file < 100; file += 1) place.write(`p${folder}/${'long-name-'.repeat(12)}${file}.ts`, '')
  }
  const request = Array.from({ length: 16 }, (_, folder) => `@p${folder}/big.ts`).join(' ')
  const { text, facts } = await gather(request)
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(120 * 1024)
  expect(Buffer.byteLength(text)).toBeGreaterThan(80 * 1024)
  for (const title of ['Files that the request names', 'Repository', 'Manifests', 'Rules of the project', 'Tree'])
    expect(part(text, title)).not.toBe('')
  expect(facts.notes).toContain('The part "Rules of the project" was shortened to fit.')
  expect(facts.mentioned).toHaveLength(16)
})

promise('C3')
test('no secret is told, nor a part of one that is cut off', async () => {
  place.git('init', '--quiet')
  place.write('a.ts', `${'x'.repeat(5_990)}hunter2hunter2`)
  place.write('CLAUDE.md', `${'x'.repeat(8_020)}hunter2hunter2`)
  place.write('package.json', JSON.stringify({ scripts: { test: `${'x'.repeat(230)}hunter2hunter2` } }))
  place.git('add', '--all')
  const subject = `${'x'.repeat(150)}hunter2hunter2`
  place.git('-c', 'user.name=p', '-c', 'user.email=p@example.org', 'commit', '--quiet', '-m', subject)
  const { text } = await gather('mend a.ts with hunter2hunter2')
  expect(text).not.toContain('hunter')
  expect(text.match(/\[secret|\[sec|\[s/g)?.length).toBeGreaterThanOrEqual(1)
})

test('it is given up as soon as nobody waits for it', async () => {
  await expect(gather('x', place.work, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
  for (let file = 0; file < 300; file += 1) place.write(`f${file}.ts`, '')
  const stopping = new AbortController()
  const gathered = gather('someName()', place.work, stopping.signal)
  stopping.abort(new Error('stopped midway'))
  await expect(gathered).rejects.toThrow('stopped midway')
})

promise('C1')
test('a thousand files take less than half a second', async () => {
  place.git('init', '--quiet')
  for (let file = 0; file < 1_000; file += 1) place.write(`p${file % 60}/f${file}.ts`, `export const name${file} = 1\n`)
  place.commit()
  await gather()
  const before = cpuMs()
  const { facts } = await gather('mend nothingSuch() and name_999')
  expect(cpuMs() - before).toBeLessThan(500 * timesSlower())
  expect(facts.entries).toBe(1_000)
})
