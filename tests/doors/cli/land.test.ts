import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { test } from '../../support/side-by-side.ts'

/** A checkout with a worktree `x`, in which `files` are committed. */
async function makeWorktree(files: Record<string, string>, name = 'x', place?: TestPlace) {
  const at = place ?? (await makePlace(''))
  const top = join(at.root, 'work.worktrees', name)
  git(at, 'worktree', 'add', '-q', '-b', `codemachine/${name}`, top)
  for (const [file, text] of Object.entries(files)) await writeFile(join(top, file), text)
  git(at, '-C', top, 'add', '.')
  git(at, '-C', top, 'commit', '-qm', 'Work', '--allow-empty')
  return { place: at, top, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() }
}

/** Both sides, to be the same before and after. */
function sides({ place, top }: { place: TestPlace; top: string }) {
  const of = (directory: string) => ({
    status: git(place, '-C', directory, 'status', '--porcelain=v2', '--branch'),
    head: git(place, '-C', directory, 'log', '-1', '--format=%H'),
    diff: git(place, '-C', directory, 'diff', 'HEAD'),
  })
  const index = readFileSync(join(place.directory, '.git/index'), 'base64')
  return { main: of(place.directory), worktree: of(top), index, stash: git(place, 'stash', 'list') }
}

const land = (place: TestPlace, ...args: string[]) => codemachineHere(place, ['land', ...args])

test('what was done is merged by a plain commit, and what the person is in the middle of stays as it is', async () => {
  await using made = await makeWorktree({ 'a.txt': 'a\n' })
  const { place, top } = made
  await writeFile(join(place.directory, 'README.md'), '# Mine\n')
  await writeFile(join(place.directory, 'staged.txt'), 'staged\n')
  git(place, 'add', 'staged.txt')
  const traces = join(place.root, 'traces')
  for (const hook of ['post-merge', 'post-checkout', 'pre-merge-commit', 'commit-msg', 'reference-transaction']) {
    await writeFile(join(place.directory, '.git/hooks', hook), `#!/bin/sh\necho ${hook} >> '${traces}'\nexit 1\n`)
    await chmod(join(place.directory, '.git/hooks', hook), 0o755)
  }
  for (const [key, value] of [
    ['commit.gpgSign', 'true'],
    ['gpg.program', 'false'],
    ['merge.ff', 'only'],
    ['merge.autoStash', 'true'],
    ['merge.verifySignatures', 'true'],
    ['core.editor', `touch '${traces}'; false`],
    ['core.fsmonitor', `touch '${traces}'; false`],
  ] as const) {
    git(place, 'config', key, value)
  }
  const { exitCode, stdout, stderr } = await land(place, '--message', 'Take it')
  const commit = readFileSync(join(place.directory, '.git/refs/heads/main'), 'utf8').trim()
  expect([exitCode, stdout, stderr]).toEqual([
    0,
    `codemachine/x is merged into main as ${commit.slice(0, 10)}: 1 file changed.\nNot proved: neither side has gates.\nTo remove codemachine/x: git -C ${place.directory} worktree remove ${top} && git -C ${place.directory} branch -d codemachine/x\n`,
    '',
  ])
  expect(existsSync(traces)).toBe(false)
  git(place, 'config', '--unset', 'core.fsmonitor')
  expect(git(place, 'log', '-1', '--format=%s|%p|%an')).toMatch(/^Take it\|\w+ \w+\|A Person$/)
  expect(git(place, 'status', '--porcelain')).toBe(' M README.md\nA  staged.txt')
  expect(git(place, 'stash', 'list')).toBe('')
  expect((await land(place)).stdout).toMatch(/^Nothing to land: main already has all of codemachine\/x\.\n/)
})

test('a conflict is found before anything is touched', async () => {
  await using made = await makeWorktree({ 'README.md': '# Theirs\n', 'a.txt': 'a\n' })
  await writeFile(join(made.place.directory, 'README.md'), '# Ours\n')
  git(made.place, 'commit', '-qam', 'Ours')
  await writeFile(join(made.place.directory, 'staged.txt'), 'staged\n')
  git(made.place, 'add', 'staged.txt')
  const before = sides(made)
  const { exitCode, stdout, stderr } = await land(made.place)
  expect([exitCode, stdout]).toEqual([4, ''])
  expect(stderr).toContain(
    'codemachine: codemachine/x and main both changed README.md. codemachine merged nothing. (CM0513)\n',
  )
  expect(sides(made)).toEqual(before)
})

test('what the person has not committed is never overwritten, be it known to git, new, or ignored', async () => {
  await using made = await makeWorktree({ 'README.md': '# Theirs\n', 'new.txt': 'theirs', '.env': 'theirs' })
  const { place } = made
  const refused = async (file: string, text: string) => {
    await writeFile(join(place.directory, file), text)
    const before = sides(made)
    expect(await land(place)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(
        `codemachine/x would overwrite uncommitted changes in ${place.directory}: ${file}. codemachine changed nothing.`,
      ),
    })
    expect(sides(made)).toEqual(before)
    expect(readFileSync(join(place.directory, file), 'utf8')).toBe(text)
  }
  await refused('README.md', '# Mine\n')
  git(place, 'checkout', '-q', 'README.md')
  await refused('new.txt', 'mine')
  git(place, 'clean', '-qf')
  await writeFile(join(place.directory, '.git/info/exclude'), '.env\n')
  await refused('.env', 'mine')
})

test('what is not committed in the worktree is not left behind unsaid, and is committed if that is asked for', async () => {
  await using made = await makeWorktree({})
  const { place, top } = made
  await writeFile(join(top, 'left.txt'), 'left\n')
  const before = sides(made)
  const { exitCode, stderr } = await land(place)
  expect([exitCode, stderr]).toEqual([
    2,
    `codemachine: ${top} has uncommitted changes, which would not be landed: left.txt. (CM0512)\n  To commit them first: codemachine land x --commit "…"\n`,
  ])
  expect(await land(place, '--commit', ' ')).toMatchObject({ exitCode: 2 })
  expect(sides(made)).toEqual(before)
  git(place, 'config', 'commit.gpgSign', 'true')
  expect(await land(place, '--commit', 'What was left')).toMatchObject({ exitCode: 0, stderr: '' })
  expect(git(place, 'log', '--format=%s', 'main^2')).toBe('What was left\nWork\nStart')
  expect(readFileSync(join(place.directory, 'left.txt'), 'utf8')).toBe('left\n')
  expect(git(place, '-C', top, 'status', '--porcelain')).toBe('')
})

test('what is not committed in the worktree stays so where it cannot be landed', async () => {
  await using made = await makeWorktree({ 'README.md': '# Theirs\n' })
  const { place, top } = made
  await writeFile(join(top, 'left.txt'), 'left\n')
  await writeFile(join(place.directory, 'left.txt'), 'mine\n')
  const inTheWay = sides(made)
  const refused = await land(place, '--commit', 'What was left')
  expect([refused.exitCode, refused.stderr]).toEqual([
    2,
    expect.stringContaining('left.txt. codemachine changed nothing.'),
  ])
  expect(sides(made)).toEqual(inTheWay)
  await writeFile(join(place.directory, 'README.md'), '# Ours\n')
  git(place, 'commit', '-qam', 'Ours')
  const conflict = sides(made)
  expect(await land(place, '--commit', 'What was left')).toMatchObject({
    exitCode: 4,
    stderr: expect.stringContaining('codemachine merged nothing.'),
  })
  expect(sides(made)).toEqual(conflict)
})

test('which worktree is meant is asked for where there are several, and they are landed one after the other', async () => {
  await using one = await makeWorktree({ a: 'a' }, 'one')
  const { place } = one
  const two = await makeWorktree({ b: 'b' }, 'two', place)
  await writeFile(join(two.top, 'c'), '')
  git(place, 'branch', 'codemachine/$(id)')
  const { exitCode, stderr } = await land(place)
  expect([exitCode, stderr]).toEqual([
    2,
    'codemachine: There is more than one branch to land; name one, or land all with --queue. (CM0511)\n  one: 1 commit\n  two: 1 commit, 1 change not committed\n',
  ])
  expect((await land(place, 'three')).stderr).toMatch(
    /^codemachine: There is no branch codemachine\/three\. \(CM0511\)\n {2}one: /,
  )
  expect((await land(place, '-C', two.top, 'one')).stderr).toMatch(
    `${two.top} is itself the worktree of codemachine/two. Run this in ${place.directory}.`,
  )
  expect((await land(place, 'codemachine/one')).exitCode).toBe(0)
  git(place, 'checkout', '-q', '--detach')
  expect((await land(place, '--commit', 'c')).stderr).toContain('Name the branch to merge into with --onto. (CM0514)')
  expect(git(place, '-C', two.top, 'status', '--porcelain')).toBe('?? c')
  git(place, 'checkout', '-q', 'main')
  git(place, '-C', two.top, 'switch', '-q', '-c', 'strayed')
  expect((await land(place, 'two')).stderr).toContain(
    `${two.top} is no longer on codemachine/two, so landing would miss newer work. `,
  )
  git(place, '-C', two.top, 'switch', '-q', 'codemachine/two')
  expect((await land(place, '--commit', 'c')).exitCode).toBe(0)
  expect(git(place, 'ls-files')).toBe('README.md\na\nb\nc')
})

test('while it is merged no run can begin in the checkout or in the worktree, and afterwards one can', async () => {
  await using made = await makeWorktree({ 'a.txt': 'a\n' })
  const { place, top } = made
  // Not where agents could write: a git there is passed over.
  const tools = await mkdtemp('/var/tmp/codemachine-tools-')
  const seen = join(place.root, 'seen')
  const locks = `'${place.env.CODEMACHINE_HOME}'/state/*/lock`
  const look = `case " $* " in *" merge "*) ls ${locks} > '${seen}';; esac`
  await writeFile(join(tools, 'git'), `#!/bin/sh\n${look}\nexec '${git(place, '--exec-path')}/git' "$@"\n`)
  await chmod(join(tools, 'git'), 0o755)
  const { exitCode, stderr } = await codemachineHere(place, ['land'], { env: { PATH: `${tools}:${place.env.PATH}` } })
  await rm(tools, { recursive: true })
  expect([exitCode, stderr]).toEqual([0, ''])
  const held = readFileSync(seen, 'utf8').trimEnd().split('\n')
  const lockOf = async (directory: string) =>
    (
      await openRecords({
        env: place.env,
        home: place.home,
        platform: process.platform,
        templates: OWN_TEMPLATES,
        directory,
      })
    ).lock
  expect(held.toSorted()).toEqual([await lockOf(place.directory), await lockOf(top)].toSorted())
  expect(held.filter(existsSync)).toEqual([])
})

promise('B10', 'Landing a worktree runs nothing that an agent has put into it')
test('nothing that an agent has put into the worktree is run by landing it', async () => {
  await using made = await makeWorktree({ 'a.txt': 'a\n' })
  const { place, top } = made
  const trace = join(place.root, 'trace')
  const inner = join(top, 'inner')
  await mkdir(inner)
  git(place, 'init', '-q', inner)
  await writeFile(join(inner, 'f'), 'before')
  git(place, '-C', inner, 'add', '.')
  git(place, '-C', inner, '-c', 'user.name=A', '-c', 'user.email=a@b', 'commit', '-qm', 'Inner')
  git(place, '-C', top, 'add', 'inner')
  git(place, '-C', top, 'commit', '-qm', 'Inner')
  git(place, '-C', inner, 'config', 'filter.evil.clean', `touch '${trace}'; cat`)
  await writeFile(join(inner, '.git/info/attributes'), '* filter=evil\n')
  await writeFile(join(inner, 'f'), 'after!')
  expect(await land(place)).toMatchObject({ exitCode: 0 })
  expect(existsSync(trace)).toBe(false)
})
