import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { findRepository } from '../../../src/workspace/git/git.ts'
import { openRepositoryGuard } from '../../../src/workspace/guard/repository-guard.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { openForgeScene, type ScriptedForge } from '../../support/scripted-forge.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { endSession, gate } from './verify/done-session.ts'

/** A session that is done on the default branch, whose one new file is not committed. */
async function done(name: 'gh' | 'glab' | null = 'gh') {
  const place = await makePlace('')
  const forge = await openForgeScene(place, name)
  await writeFile(join(place.directory, 'app.txt'), 'good\n')
  await endSession(place, [gate('grep -q good app.txt')])
  return {
    place,
    forge,
    publish: (args: string[] = ['--yes'], options: { tty?: boolean; input?: string } = {}) =>
      codemachineHere(place, ['publish', ...args], { env: forge.env, ...options }),
    async [Symbol.asyncDispose]() {
      await place[Symbol.asyncDispose]()
      await forge[Symbol.asyncDispose]()
    },
  }
}

const BRANCH = 'codemachine/20261121_1'

/** What must stay as it is, whatever is published. */
function checkoutOf(place: TestPlace): string[] {
  return [
    git(place, 'status', '--porcelain'),
    git(place, 'branch'),
    git(place, 'log', '--format=%H %D'),
    git(place, 'config', '--list'),
  ]
}

promise(
  'D131',
  'The result of a session becomes a pull or merge request by the person’s own gh or glab, and their checkout, branches and configuration stay as they are',
)
test.each<['gh' | 'glab', string]>([
  ['gh', 'https://forge.test/acme/shop/pull/7'],
  ['glab', 'https://forge.test/acme/shop/-/merge_requests/7'],
])(
  'files that are not committed go to a branch of their own, and %s opens a request with the proof',
  async (name, url) => {
    await using scene = await done(name)
    const { place, forge } = scene
    const before = checkoutOf(place)
    const { exitCode, stdout, stderr } = await scene.publish()
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: `published: ${url}\n` })
    expect(stderr).toContain(`to ${BRANCH} of origin (forge.test/acme/shop)`)
    expect(checkoutOf(place)).toEqual(before)
    expect(forge.git('show', `${BRANCH}:app.txt`)).toBe('good')
    expect(forge.git('log', '-1', '--format=%P', BRANCH)).toBe(git(place, 'rev-parse', 'HEAD'))
    const [request] = (await forge.state()).requests
    expect(request).toMatchObject({ branch: BRANCH, main: 'main', title: 'build X', isDraft: false })
    expect(request?.body).toContain('**Done, gates pass: verified by 1 gate')
    expect(request?.body).toContain('`grep -q good app.txt` passed')
    expect(request?.body).toContain('Check it again: `codemachine verify 20261121_1`')
    const report = await codemachineHere(place, ['report', '--md'])
    expect(report.stdout).toContain('Published: https')
    expect((await codemachineHere(place, ['logs', '--json'])).stdout).toContain(
      `"type":"published","pushedTo":"origin"`,
    )
  },
)

promise('B140', 'Nothing is pushed while a session in another work tree can change what git runs for the repository')
test('a worktree is not published while the guard of another one has not closed', async () => {
  await using scene = await done()
  const { place, forge } = scene
  const workTree = join(place.root, 'other')
  git(place, 'worktree', 'add', '-q', workTree)
  const folder = join(place.home, '.codemachine', 'state', 'other-1')
  await mkdir(folder)
  const guard = await openRepositoryGuard({
    repository: await findRepository(workTree),
    workTree,
    setAsideDir: join(folder, 'set-aside'),
    baselineFile: join(folder, 'guard.json'),
    leaveOut: [],
    reach: { env: place.env, sandbox: 'workspace-write' },
  })
  git(place, 'config', 'remote.origin.pushurl', join(place.root, 'evil.git'))
  const { exitCode, stderr } = await scene.publish()
  expect(exitCode, stderr).toBe(6)
  expect(stderr).toContain(
    `codemachine does not publish while a session in ${workTree} could change this repository's hooks or config.`,
  )
  expect((await forge.state()).requests).toEqual([])
  await guard.check()
  await guard.close()
  expect(await scene.publish()).toMatchObject({ exitCode: 0 })
})

promise(
  'D132',
  'A later publishing of the same branch changes only what codemachine wrote in the request, and pushes never by force',
)
test.each<'gh' | 'glab'>(['gh', 'glab'])(
  'the words of a person in the request stay, and more work is a commit on top (%s)',
  async name => {
    await using scene = await done(name)
    const { place, forge } = scene
    await scene.publish(['--yes', '--draft'])
    const first = forge.git('rev-parse', BRANCH)
    const [request] = (await forge.state()).requests
    expect(request?.isDraft).toBe(true)
    // A fork has a branch of this name, too.
    const fork = { number: 99, branch: BRANCH, main: 'main', title: '', body: 'theirs', isDraft: true, isFork: true }
    const theirWords = { ...fork, number: 7, isFork: false, body: `Look, Ann!\n\n${request?.body}\n\nMine.` }
    await forge.change({ requests: [fork, theirWords] })
    await writeFile(join(place.directory, 'more.txt'), 'more\n')
    const again = await scene.publish()
    expect(again).toMatchObject({ exitCode: 0 })
    expect(again.stderr).toContain('The files are not those that were proved')
    expect(forge.git('rev-parse', `${BRANCH}^`)).toBe(first)
    const [theirs, mine, ...others] = (await forge.state()).requests
    expect([theirs?.body, others]).toEqual(['theirs', []])
    expect(mine).toMatchObject({ isDraft: true })
    expect(mine?.body).toMatch(
      /^Look, Ann!\n\n<!-- codemachine:begin -->[\s\S]*The files are not those[\s\S]*<!-- codemachine:end -->\n\nMine\.$/,
    )
  },
)

promise('D132')
test('work that somebody else pushed to the branch is not overwritten, also where the files here would', async () => {
  await using scene = await done()
  const { place, forge } = scene
  await scene.publish()
  const theirs = forge.git(
    '-c',
    'user.name=b',
    '-c',
    'user.email=b@c',
    'commit-tree',
    '-p',
    BRANCH,
    '-m',
    'Fix',
    `${BRANCH}^{tree}`,
  )
  forge.git('update-ref', `refs/heads/${BRANCH}`, theirs)
  await writeFile(join(place.directory, 'more.txt'), 'more\n')
  const { exitCode, stderr } = await scene.publish()
  expect(exitCode).toBe(2)
  expect(stderr).toContain(`The branch ${BRANCH} of origin has commits that are not here. Merge them first. (CM1203)`)
  expect(forge.git('rev-parse', BRANCH)).toBe(theirs)
})

test('what is committed on a branch of the person is pushed to that branch, and its note with it', async () => {
  await using scene = await done()
  const { place, forge } = scene
  git(place, 'switch', '-qc', 'feature/x')
  git(place, 'add', '-A')
  git(place, 'commit', '-qm', 'Work, fixes #4')
  const { exitCode, stderr } = await scene.publish(['--yes', '--note', '--json'])
  expect(exitCode).toBe(0)
  expect(stderr).toContain('says "fixes #4", which closes that issue')
  expect(forge.git('rev-parse', 'feature/x')).toBe(git(place, 'rev-parse', 'HEAD'))
  expect(forge.git('notes', '--ref=codemachine', 'list')).toContain(git(place, 'rev-parse', 'HEAD'))
  const [request] = (await forge.state()).requests
  expect(request?.body).toContain('codemachine verify --note')
  expect(request?.body).not.toMatch(/fixes #4/)
})

promise('D133', 'Nothing is published that nobody confirmed; a project’s own file cannot ask for it')
describe('nothing is pushed', () => {
  const unpushed = (forge: ScriptedForge) => forge.git('branch', '--format=%(refname:short)')

  test('if the person says no on the terminal, having seen remote and title', async () => {
    await using scene = await done()
    const { exitCode, stdout } = await scene.publish([], { tty: true, input: 'n\n' })
    expect(exitCode).toBe(0)
    expect(stdout).toContain('a pull request into main: build X\nPublish it? [Y/n]')
    expect(stdout).toContain('Nothing is published.')
    expect(unpushed(scene.forge)).toBe('main')
  })

  test.each<[string, string[], string, Partial<Parameters<ScriptedForge['change']>[0]>]>([
    [
      'nobody can confirm',
      [],
      'Without a terminal, you cannot confirm this; use --yes to publish the result. (CM0105)',
      {},
    ],
    [
      'the remote is unknown',
      ['--yes', '--remote', 'up'],
      'This repository has no remote up: there is origin. (CM1204)',
      {},
    ],
    [
      'gh is not logged in',
      ['--yes'],
      'gh is not logged in to forge.test: forge.test: authentication failed. (CM1201)',
      { isLoggedIn: false },
    ],
    [
      'gh answers no JSON',
      ['--yes'],
      'its answer is not the JSON that codemachine expects. (CM1202)',
      { instead: { 'pr list': { stdout: 'Hi' } } },
    ],
    [
      'gh answers 50 MB',
      ['--yes'],
      'it answers more than 8 MiB. (CM1202)',
      { instead: { 'pr list': { megabytes: 50 } } },
    ],
    [
      'gh fails with escapes',
      ['--yes'],
      'look for a pull request of codemachine/20261121_1: no ␛[31mway. (CM1202)',
      { instead: { 'pr list': { stderr: 'no \u001b[31mway', exitCode: 1 } } },
    ],
    ['--title is blank', ['--yes', '--title', ' '], '--title is empty', {}],
  ])('if %s', async (_, args, sentence, state) => {
    await using scene = await done()
    await scene.forge.change(state)
    const { exitCode, stderr, stdout } = await scene.publish(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(sentence)
    expect(unpushed(scene.forge)).toBe('main')
  })

  promise(
    'B141',
    'A remote whose address names a command runs nothing, whatever the configuration of the repository allows',
  )
  test('if the address of the remote is a command', async () => {
    await using scene = await done()
    const { place } = scene
    const ran = join(place.root, 'ran')
    git(place, 'config', 'protocol.ext.allow', 'always')
    git(place, 'config', 'remote.origin.url', `ext::touch ${ran}`)
    const { exitCode, stderr } = await scene.publish()
    expect(exitCode, stderr).toBe(2)
    expect(existsSync(ran)).toBe(false)
  })

  test('if neither gh nor glab is there, or only where an agent can write', async () => {
    await using scene = await done(null)
    const { exitCode, stderr } = await scene.publish()
    expect(exitCode).toBe(2)
    expect(stderr).toContain('Neither gh nor glab was found on the PATH; install the one for forge.test. (CM1201)')
    expect(unpushed(scene.forge)).toBe('main')
  })

  test('if the project’s own file asks for it', async () => {
    await using scene = await done()
    await writeFile(join(scene.place.directory, 'codemachine.toml'), 'publish = "draft"\n')
    const { exitCode, stderr } = await scene.publish([])
    expect(exitCode).toBe(2)
    expect(stderr).toContain("publish cannot be set by a project's own file")
  })
})

test('a remote that is a path gets the branch, and it is said that no request is opened', async () => {
  await using scene = await done(null)
  git(scene.place, 'remote', 'set-url', 'origin', scene.forge.bare)
  const { exitCode, stdout, stderr } = await scene.publish()
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: `published: the branch ${BRANCH} is on origin\n` })
  expect(stderr).toContain(`(${scene.forge.bare})`)
  expect(stderr).toContain('That address is on no host, so only the branch is pushed.')
})

test('what a hook of the remote says when it declines is told, and nothing is journaled', async () => {
  await using scene = await done()
  await writeFile(
    join(scene.forge.bare, 'hooks', 'pre-receive'),
    '#!/bin/sh\necho "No work on Fridays" >&2\nexit 1\n',
    { mode: 0o755 },
  )
  const { exitCode, stderr } = await scene.publish()
  expect(exitCode).toBe(2)
  expect(stderr).toContain('The remote origin refused the push: pre-receive hook declined No work on Fridays. (CM1203)')
})

test('if the request cannot be opened after the push, the session says what was pushed, and what failed', async () => {
  await using scene = await done()
  await scene.forge.change({ instead: { 'pr create': { stderr: 'GraphQL: Drafts are not supported', exitCode: 1 } } })
  const { exitCode, stderr } = await scene.publish()
  expect(exitCode).toBe(2)
  expect(stderr).toContain('gh could not open a pull request: GraphQL: Drafts are not supported. (CM1202)')
  const logs = await codemachineHere(scene.place, ['logs'])
  expect(logs.stdout).toContain(`Pushed: the branch ${BRANCH} is on origin.`)
})
