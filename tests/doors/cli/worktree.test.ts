import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect } from 'vitest'
import { inWorktree } from '../../../src/project/start/worktree.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { startCodemachine } from '../../support/codemachine.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

/** What of a checkout is the person's, and the same after as before. */
function checkoutOf(place: TestPlace) {
  return {
    status: git(place, 'status', '--porcelain=v2', '--branch'),
    stash: git(place, 'stash', 'list'),
    index: readFileSync(join(place.directory, '.git/index'), 'base64'),
    head: readFileSync(join(place.directory, '.git/HEAD'), 'utf8'),
    reflog: readFileSync(join(place.directory, '.git/logs/HEAD'), 'utf8'),
    config: readFileSync(join(place.directory, '.git/config'), 'utf8'),
  }
}

/** A person in the middle of something, with hooks that leave a trace. */
async function makeBusy(place: TestPlace): Promise<{ traces: string }> {
  const write = (file: string, text: string) => writeFile(join(place.directory, file), text)
  await write('README.md', '# Put away\n')
  git(place, 'stash', '-q')
  await write('staged.txt', 'staged\n')
  git(place, 'add', 'staged.txt')
  await write('staged.txt', 'and changed since\n')
  await write('codemachine.toml', 'rounds = 5\n')
  const traces = join(place.root, 'traces')
  for (const hook of ['post-checkout', 'post-merge', 'reference-transaction']) {
    const path = join(place.directory, '.git/hooks', hook)
    await writeFile(path, `#!/bin/sh\necho ${hook} >> '${traces}'\n`)
    await chmod(path, 0o755)
  }
  git(place, 'config', 'branch.autoSetupMerge', 'always')
  return { traces }
}

test('two runs at once each get a worktree and a branch, and the checkout of the person stays as it is', async () => {
  const either = `if [ -f a.txt ]; then ${claimDone}; else basename "$PWD" > a.txt; git add a.txt; git -c core.hooksPath=/dev/null commit -qm "Add a"; fi`
  await using scene = await openScene([round(either), round(either), round(either), round(either)])
  const { place } = scene
  const { traces } = await makeBusy(place)
  const before = checkoutOf(place)
  await using one = scene.start('build X', '--worktree', '--json', '--rounds', '5')
  await using two = scene.start('--worktree', '--json', '--rounds', '5', 'build X')
  const runs = [await one.ended, await two.ended]
  expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 0])
  expect(checkoutOf(place)).toEqual(before)
  expect(existsSync(traces)).toBe(false)

  const tops = runs.map(({ events }) => events.find(event => event.type === 'session-created')?.directory ?? '')
  expect(new Set(tops).size).toBe(2)
  for (const [index, top] of tops.entries()) {
    const name = /\/work\.worktrees\/(\d{8}-[12])$/.exec(top)?.[1] ?? ''
    expect(readFileSync(join(top, 'a.txt'), 'utf8')).toBe(`${name}\n`)
    expect(git(place, 'log', '--format=%s', `codemachine/${name}`)).toBe('Add a\nStart')
    expect(existsSync(join(top, 'staged.txt'))).toBe(false)
    expect(runs[index]?.stderr).toBe(
      [
        `This session works in ${top}, on the new branch codemachine/${name}.`,
        `Uncommitted files of ${place.directory} are not in there: 2 changes (codemachine.toml is among them).`,
        `The work lies on the branch codemachine/${name}, in ${top}. To merge it: codemachine land ${name} -C ${place.directory}`,
        '',
      ].join('\n'),
    )
  }
})

promise('E21', 'A worktree is worked in, and landed')
test('a run from a folder works in the same folder of the worktree, the next one goes on there, and meanwhile nothing is landed', async () => {
  const go = Promise.withResolvers<void>()
  await using scene = await openRealScene([
    round('echo hi > a.txt; git add a.txt; git commit -qm "Add a"'),
    [held(go.promise), ...round(claimDone)],
    round(claimDone),
  ])
  const { place } = scene
  const cwd = join(place.directory, 'packages', 'one')
  await mkdir(cwd, { recursive: true })
  await writeFile(join(cwd, 'x'), 'x')
  git(place, 'add', '.')
  git(place, 'commit', '-qm', 'Packages')
  const first = await codemachineHere(place, ['--worktree', 'try', '--rounds', '1', '--json', 'build X'], { cwd })
  expect(first).toMatchObject({ exitCode: 3 })
  const top = join(place.root, 'work.worktrees', 'try')
  expect(first.events[0]).toMatchObject({ directory: join(top, 'packages/one') })
  expect(git(place, 'show', '--format=%s', '--name-only', 'codemachine/try')).toBe('Add a\n\npackages/one/a.txt')

  await using second = startCodemachine(place, ['then Y', '--worktree=try', '--rounds', '2', '--json'], { cwd })
  await second.event('item-completed', ({ item }) => item.kind === 'agent-message')
  const refused = await scene.run('land')
  expect(refused).toMatchObject({ exitCode: 6, stdout: '' })
  expect(refused.stderr).toContain(`codemachine: codemachine (pid ${second.pid}) runs in ${top}/packages/one, `)
  expect((await codemachineHere(place, ['--worktree', 'try', 'and Z'], { cwd })).exitCode).toBe(6)
  go.resolve()
  expect(await second.ended).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining(`This session works in ${top}/packages/one, on the branch codemachine/try.\n`),
  })
  expect(await scene.run('land')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^codemachine\/try is merged into main as [0-9a-f]{10}: 1 file changed\.\n/),
  })
  expect(readFileSync(join(cwd, 'a.txt'), 'utf8')).toBe('hi\n')
  expect(existsSync(top)).toBe(true)
})

test('a worktree that cannot be is told in one sentence, and then nothing is made', async () => {
  await using place = await makePlace('')
  const worktrees = join(place.root, 'work.worktrees')
  await mkdir(join(place.directory, 'new'))
  git(place, 'branch', 'codemachine/taken')
  const refs = git(place, 'for-each-ref')
  const refused = async (args: string[], said: string, cwd = place.directory) => {
    const { exitCode, stdout, stderr } = await codemachineHere(place, [...args, 'build', 'X'], { cwd })
    expect([exitCode, stdout, stderr]).toEqual([2, '', expect.stringContaining(said)])
    expect(stderr.split('\n').length).toBeLessThan(4)
  }
  await refused(['--worktree', 'a b'], 'codemachine: "a b" is not a valid name of a worktree; ')
  await refused(['--worktree', '../x'], 'codemachine: "../x" is not a valid name of a worktree; ')
  await refused(['--worktree', '-C', 'new'], 'codemachine: No commit contains new yet, ')
  await refused(['--worktree', 'taken'], 'the branch codemachine/taken already exists, and ')
  await refused(['--worktree', 'x', '--rounds', '0'], 'codemachine: --rounds is "0"; ')
  await refused(['--worktree', 'x', '--codex-bin', '/nowhere'], 'codemachine: --codex-bin names /nowhere, ')
  expect(git(place, 'for-each-ref')).toBe(refs)
  expect(existsSync(worktrees)).toBe(false)

  await writeFile(worktrees, 'in the way')
  await refused(['--worktree', 'x'], `The worktree cannot be made in ${worktrees}, beside work: `)

  git(place, 'branch', '-D', 'codemachine/taken')
  git(place, 'branch', 'codemachine')
  await refused(['--worktree'], 'Because a branch codemachine exists, git cannot make a branch ')

  await using plain = await makePlace('', { git: false })
  const elsewhere = (said: string, cwd = plain.directory) => refused(['--worktree', 'x'], said, cwd)
  await elsewhere(`${plain.directory} is not in a git repository. `)
  git(plain, 'init', '-q')
  await elsewhere(`${plain.directory} has no commit yet, `)
  const bare = join(plain.root, 'bare.git')
  git(plain, 'clone', '-q', '--bare', place.directory, bare)
  await elsewhere(`${bare} is a bare repository, `, bare)
  git(plain, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', place.directory, 'inner')
  await elsewhere('is a submodule, ', join(plain.directory, 'inner'))
  expect(existsSync(join(plain.directory, 'inner.worktrees'))).toBe(false)
})

test('a worktree is not gone on with where an agent has led it elsewhere', async () => {
  await using place = await makePlace('')
  await mkdir(join(place.directory, 'sub'))
  await writeFile(join(place.directory, 'sub/x'), '')
  git(place, 'add', '.')
  git(place, 'commit', '-qm', 'Sub')
  const top = join(place.root, 'work.worktrees/x')
  git(place, 'worktree', 'add', '-q', '-b', 'codemachine/x', top)
  const refused = async (said: string, ...args: string[]) => {
    expect(await codemachineHere(place, ['--worktree', 'x', ...args, 'build', 'X'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(said),
    })
  }
  git(place, '-C', top, 'rm', '-q', 'sub/x')
  await symlink(await realpath(place.home), join(top, 'sub'))
  await refused(`The worktree has no folder ${top}/sub. `, '-C', 'sub')
  git(place, '-C', top, 'switch', '-q', '-c', 'other')
  await refused(`The worktree ${top} is on another branch, not on codemachine/x. `)
  git(place, '-C', top, 'switch', '-q', 'codemachine/x')
  git(place, 'init', '-q', join(place.root, 'evil'))
  await writeFile(join(top, '.git'), `gitdir: ${place.root}/evil/.git\n`)
  await refused(`${top}/.git no longer points to ${place.directory}/.git. `)
  expect((await codemachineHere(place, ['land'])).stderr).toContain(`${top}/.git no longer points to `)
})

test('work that is not committed is landed by the line that is said at its end', async () => {
  await using place = await makePlace('')
  const said: string[] = []
  const context = cliContext(place)
  const works = async (inside: string) => {
    const records = await openRecords({ ...context, directory: inside })
    await records.nextSessionId(new Date())
    await writeFile(join(inside, 'a.txt'), 'a\n')
    return 0
  }
  await inWorktree(context, { name: 'x' }, line => said.push(line), works)
  const top = join(place.root, 'work.worktrees', 'x')
  expect(said.at(-1)).toBe(
    `The work lies on the branch codemachine/x, in ${top}; 1 change of it is not committed. To merge it: codemachine land x -C ${place.directory} --commit "…"`,
  )
  expect(await codemachineHere(place, ['land', 'x', '-C', place.directory, '--commit', 'Add a'])).toMatchObject({
    exitCode: 0,
  })
  await inWorktree(
    context,
    { name: 'x' },
    line => said.push(line),
    async () => 0,
  )
  expect(said.at(-1)).toMatch(/, in [^;]+\. To merge it: codemachine land x -C \S+$/)
  await inWorktree(
    context,
    { name: 'y' },
    line => said.push(line),
    async inside => {
      await works(inside)
      await rm(join(inside, '.git'))
      return 0
    },
  )
  expect(said.at(-1)).toMatch(/ To merge it: codemachine land y -C \S+$/)
})

test('a run that is cut short in the middle still says where its work lies', async () => {
  await using place = await makePlace('')
  const stderr = new PassThrough()
  const context = cliContext(place, { stderr })
  const top = join(place.root, 'work.worktrees', 'x')
  const cutShort = (begins: boolean) =>
    inWorktree(
      context,
      { name: 'x' },
      line => stderr.write(`${line}\n`),
      async inside => {
        const records = await openRecords({ ...context, directory: inside })
        if (begins) await records.nextSessionId(new Date())
        throw new Error('no space left on device')
      },
    )
  await expect(cutShort(false)).rejects.toThrow('no space')
  expect([existsSync(top), String(stderr.read())]).toEqual([false, expect.not.stringContaining('To merge it')])
  await expect(cutShort(true)).rejects.toThrow('no space')
  expect(existsSync(top)).toBe(true)
  expect(String(stderr.read())).toContain(`To merge it: codemachine land x -C ${place.directory}\n`)

  await rm(top, { recursive: true })
  expect((await codemachineHere(place, ['--worktree', 'x', 'go on'])).stderr).toContain(
    `To work on that branch again: git worktree prune && git worktree add ${top} codemachine/x`,
  )
})

test('a build works in a worktree by the specification of the checkout, which git does not bring there', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone)])
  const { place } = scene
  const inputs = join(place.directory, '.codemachine/inputs')
  const start = ['start', '--yes', '--template', 'goal', '--worktree', 'game']
  expect(await scene.run(...start)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('still the guide') })
  await writeFile(join(inputs, 'specifications.md'), '# A game\n\nFor two.\n')
  await writeFile(join(inputs, 'board.txt'), 'nine fields')
  const top = join(place.root, 'work.worktrees/game')
  const refused = await scene.run(...start, '--codex-bin', '/nowhere')
  expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('names /nowhere') })
  expect(existsSync(top)).toBe(false)
  const { exitCode, events, stderr } = await scene.run(...start, '--json')
  expect(exitCode, stderr).toBe(0)
  expect(events.find(({ type }) => type === 'session-created')).toMatchObject({ directory: await realpath(top) })
  expect(readFileSync(join(top, '.codemachine/inputs/board.txt'), 'utf8')).toBe('nine fields')
  expect(stderr).toContain('The specification and the files beside it were copied there.\n')
})

test('a goal that is empty is refused before a worktree is made for it', async () => {
  await using place = await makePlace('')
  for (const args of [
    ['--worktree', 'night', '-'],
    ['--worktree', 'night', '--follow-up', '20261120_1'],
  ]) {
    const { exitCode, stderr } = await codemachineHere(place, args)
    expect(exitCode).toBe(2)
    expect(stderr).not.toContain('This session works in')
  }
  expect(existsSync(join(place.root, 'work.worktrees'))).toBe(false)
  expect(git(place, 'branch', '--list', 'codemachine/*')).toBe('')
})
