import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { packSession, readCarried } from '../../src/fleet/carried.ts'
import { branchOf, Clones, RemoteError } from '../../src/fleet/worker/clones.ts'
import { openFingerprints } from '../../src/workspace/fingerprint/fingerprint.ts'
import { findRepository } from '../../src/workspace/git/git.ts'
import { openSavepoints } from '../../src/workspace/savepoints/savepoint-writer.ts'
import { promise } from '../support/promise.ts'
import { workDirectoryForEach } from '../support/work-directory.ts'

const place = workDirectoryForEach('codemachine-clones')
const S1 = '20261128_1'
const S2 = '20261128_2'
const REF = `refs/codemachine/${S1}/state`
const never = new AbortController().signal

let clones: Clones
/** A bare repository, with what is committed in the work directory on `main`. */
let remote: string
beforeEach(async () => {
  remote = join(place.base, 'remote.git')
  place.gitIn(place.base, 'init', '-q', '--bare', remote)
  place.git('init', '-q', '-b', 'main')
  place.write('a.txt', 'one\n')
  publish()
  clones = await open()
})

const open = (keep = 10) =>
  Clones.open({ root: join(place.base, 'worker'), keep, env: { ...place.environment(), GIT_DIR: '/nowhere' } })
const bare = (...args: string[]) => place.gitIn(place.base, `--git-dir=${remote}`, ...args)

/** Commits all of the work directory, and pushes it; answers the commit. */
function publish(branch = 'main'): string {
  place.commit()
  place.git('push', '-q', '--force', remote, `HEAD:refs/heads/${branch}`)
  return place.git('rev-parse', 'HEAD')
}

/** A clone of what is on `main` for a session. */
async function cloneOf(session: string): Promise<{ mirror: string; folder: string; base: string }> {
  const mirror = await clones.fetch(remote, session, never)
  const base = (await clones.resolve(mirror, 'main', never)) ?? ''
  return { mirror, base, folder: await clones.clone(mirror, session, base, never) }
}

/** Something that leaves a trace when it is run. */
function trap(name: string): { program: string; hasRun: () => boolean } {
  const trace = join(place.base, `${name}-has-run`)
  const program = join(place.base, name)
  writeFileSync(program, `#!/bin/sh\ntouch ${trace}\n`, { mode: 0o755 })
  return { program, hasRun: () => existsSync(trace) }
}

describe('the clone of a session', () => {
  test('has the commit checked out on a branch of its own, and no remote', async () => {
    place.write('deep/b.txt', 'two\n')
    const head = publish()
    const { folder, base } = await cloneOf(S1)
    expect(base).toBe(head)
    expect(readFileSync(join(folder, 'deep/b.txt'), 'utf8')).toBe('two\n')
    expect(place.gitIn(folder, 'symbolic-ref', 'HEAD')).toBe(`refs/heads/${branchOf(S1)}`)
    expect(place.gitIn(folder, 'rev-parse', 'HEAD')).toBe(head)
    expect(place.gitIn(folder, 'status', '--porcelain')).toBe('')
    expect(place.gitIn(folder, 'remote')).toBe('')
  })

  test('borrows its objects, and nothing that is left in it reaches another session', async () => {
    const { folder, mirror } = await cloneOf(S1)
    place.gitIn(folder, 'config', 'core.fsmonitor', '/evil')
    place.gitIn(folder, 'update-ref', 'refs/heads/main', 'HEAD')
    writeFileSync(join(folder, 'a.txt'), 'changed')
    mkdirSync(join(folder, '.git/hooks'), { recursive: true })
    const second = await cloneOf(S2)
    expect(second.mirror).toBe(mirror)
    expect(readFileSync(join(second.folder, 'a.txt'), 'utf8')).toBe('one\n')
    expect(readFileSync(join(second.folder, '.git/config'), 'utf8')).not.toContain('evil')
    expect(readdirSync(join(second.folder, '.git/objects')).filter(name => name.length === 2)).toEqual([])
  })

  test('that is there already, of a worker before, goes first', async () => {
    const { folder } = await cloneOf(S1)
    writeFileSync(join(folder, 'left-over'), '')
    expect(existsSync(join((await cloneOf(S1)).folder, 'left-over'))).toBe(false)
  })

  test('follows what was pushed since, also where that was rewritten or taken away', async () => {
    place.git('push', '-q', remote, 'HEAD:refs/heads/other')
    await cloneOf(S1)
    place.write('a.txt', 'rewritten\n')
    place.git('checkout', '-q', '--orphan', 'anew')
    const head = publish()
    place.git('push', '-q', remote, ':refs/heads/other')
    const { mirror, base } = await cloneOf(S2)
    expect(base).toBe(head)
    expect(await clones.resolve(mirror, 'other', never)).toBeNull()
  })

  test('is of a branch, a tag or a commit, the branch first; of what is not there there is none', async () => {
    const first = place.git('rev-parse', 'HEAD')
    place.git('tag', 'v1')
    place.git('-c', 'user.name=p', '-c', 'user.email=p@example.org', 'tag', '-a', 'v2', '-m', 'x')
    place.git('push', '-q', remote, 'v1', 'v2')
    place.write('a.txt', 'two\n')
    const second = publish('v1')
    const mirror = await clones.fetch(remote, S1, never)
    expect(await clones.resolve(mirror, 'v1', never)).toBe(second)
    expect(await clones.resolve(mirror, 'v2', never)).toBe(first)
    expect(await clones.resolve(mirror, first, never)).toBe(first)
    for (const gone of ['nothing', 'f'.repeat(40), '--all'])
      expect(await clones.resolve(mirror, gone, never)).toBeNull()
    expect(await clones.hasCommit(mirror, first, never)).toBe(true)
    expect(await clones.hasCommit(mirror, 'f'.repeat(40), never)).toBe(false)
  })

  test('is taken away with the session; its mirror stays while another one borrows from it', async () => {
    const { folder, mirror } = await cloneOf(S1)
    await cloneOf(S2)
    const few = async () => {
      const unused = await open(0)
      await unused.fetch(remote, S2, never)
      await unused.prune()
      return unused
    }
    await clones.remove(S1)
    expect(existsSync(folder)).toBe(false)
    const other = await few()
    expect(existsSync(mirror)).toBe(true)
    await other.remove(S2)
    await other.prune()
    expect(existsSync(mirror)).toBe(false)
  })
})

describe('of a repository', () => {
  test('that is empty there is a mirror, and nothing in it', async () => {
    const empty = join(place.base, 'empty.git')
    place.gitIn(place.base, 'init', '-q', '--bare', empty)
    const mirror = await clones.fetch(empty, S1, never)
    for (const ref of ['main', 'master', 'HEAD']) expect(await clones.resolve(mirror, ref, never)).toBeNull()
  })

  test('that is gone it is said so, and that no other time is better', async () => {
    const server = createServer((_, response) => response.writeHead(404).end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    try {
      const problem = await clones.fetch(`http://127.0.0.1:${port}/app.git`, S1, never).catch(error => error)
      expect(problem).toBeInstanceOf(RemoteError)
      expect(problem).toMatchObject({ isAway: false, message: expect.stringMatching(/not found/) })
    } finally {
      server.close()
    }
  })

  test('whose machine is away it is said that another time may be better', async () => {
    // Nothing listens there.
    const problem = await clones.fetch('http://127.0.0.1:9/app.git', S1, never).catch(error => error)
    expect(problem).toBeInstanceOf(RemoteError)
    expect(problem).toMatchObject({ isAway: true })
    await expect(clones.remoteRef('http://127.0.0.1:9/app.git', REF, never)).rejects.toBeInstanceOf(RemoteError)
  })

  promise('N8', 'No address, branch or tag is an option of git; no filter, hook or template is run')
  test('no program is begun that its address names', async () => {
    const { program, hasRun } = trap('helper')
    for (const repo of [`ext::${program}`, `--upload-pack=${program}`])
      await expect(clones.fetch(repo, S1, never)).rejects.toThrow()
    expect(hasRun()).toBe(false)
  })

  test('that was asked for twice at the same time, both have it', async () => {
    const [one, two] = await Promise.all([cloneOf(S1), cloneOf(S2)])
    expect(one.base).toBe(two.base)
  })
})

describe('what a repository asks for', () => {
  promise('N8')
  test('is not run: no filter, hook or template of the person whose configuration has one', async () => {
    const filter = trap('filter')
    const hook = trap('hook')
    const hooks = join(place.base, 'hooks')
    mkdirSync(hooks)
    for (const name of ['post-checkout', 'pre-push', 'reference-transaction', 'post-index-change'])
      writeFileSync(join(hooks, name), readFileSync(hook.program), { mode: 0o755 })
    const template = join(place.base, 'template')
    mkdirSync(join(template, 'hooks'), { recursive: true })
    writeFileSync(join(template, 'hooks/post-checkout'), readFileSync(hook.program), { mode: 0o755 })
    place.write('.gitattributes', '* filter=evil diff=evil\n*.txt ident\n')
    place.write(
      '.gitmodules',
      `[submodule "x"]\n\tpath = x\n\turl = ext::${filter.program}\n\tupdate = !${filter.program}\n`,
    )
    place.write('.gitconfig', `[core]\n\tfsmonitor = ${filter.program}\n`)
    publish()
    const configuration = [
      `[filter "evil"]\n\tsmudge = ${filter.program}\n\tclean = ${filter.program}\n\trequired = true`,
      `[core]\n\thooksPath = ${hooks}\n\tfsmonitor = ${filter.program}`,
      `[init]\n\ttemplateDir = ${template}\n\tdefaultBranch = other`,
      '[submodule]\n\trecurse = true',
      '[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = /nowhere',
    ]
    writeFileSync(join(place.base, 'home/.gitconfig'), `${configuration.join('\n')}\n`)
    const { folder, mirror, base } = await cloneOf(S1)
    const marker = await clones.marker(mirror, { from: null, tip: base, session: S1, epoch: 1 }, never)
    expect(hook.hasRun()).toBe(false)
    // The other side is a repository of this person, too, whose hooks are run there.
    rmSync(join(hooks, 'reference-transaction'))
    const pushed = await clones.push(mirror, { remote, ref: REF, commit: marker, expected: null }, never)
    expect(pushed).toBe(true)
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('one\n')
    expect(existsSync(join(folder, '.git/hooks'))).toBe(false)
    expect(existsSync(join(folder, '.git/modules'))).toBe(false)
    expect([filter.hasRun(), hook.hasRun()]).toEqual([false, false])
  })
})

describe('what is pushed', () => {
  test('arrives only if the reference is where it was expected', async () => {
    const { mirror, base } = await cloneOf(S1)
    const push = (commit: string, expected: string | null) =>
      clones.push(mirror, { remote, ref: REF, commit, expected }, never)
    expect(await clones.remoteRef(remote, REF, never)).toBeNull()
    expect(await push(base, null)).toBe(true)
    expect(await clones.remoteRef(remote, REF, never)).toBe(base)
    const first = await clones.marker(mirror, { from: null, tip: base, session: S1, epoch: 1 }, never)
    const second = await clones.marker(mirror, { from: null, tip: base, session: S1, epoch: 2 }, never)
    // Both know of the same: one of them is too late.
    expect(await push(second, base)).toBe(true)
    expect(await push(first, base)).toBe(false)
    expect(await push(first, null)).toBe(false)
    expect(bare('rev-parse', REF)).toBe(second)
  })

  promise('N9', 'A result is pushed only by whoever owns the session')
  test('does not arrive where another reference is not where it was any more', async () => {
    const { mirror, base } = await cloneOf(S1)
    const ours = await clones.marker(mirror, { from: null, tip: base, session: S1, epoch: 1 }, never)
    const theirs = await clones.marker(mirror, { from: null, tip: base, session: S1, epoch: 2 }, never)
    const ref = `refs/heads/${branchOf(S1)}`
    const push = () =>
      clones.push(mirror, { remote, ref, commit: base, expected: null, held: { ref: REF, commit: ours } }, never)
    await clones.push(mirror, { remote, ref: REF, commit: theirs, expected: null }, never)
    expect(await push()).toBe(false)
    expect(await clones.remoteRef(remote, ref, never)).toBeNull()
    await clones.push(mirror, { remote, ref: REF, commit: ours, expected: theirs }, never)
    expect(await push()).toBe(true)
    expect(bare('rev-parse', ref)).toBe(base)
  })

  test('is not lost to a remote that is away, and not taken for refused', async () => {
    const { mirror, base } = await cloneOf(S1)
    rmSync(remote, { recursive: true })
    const pushed = clones.push(mirror, { remote, ref: REF, commit: base, expected: null }, never)
    await expect(pushed).rejects.toBeInstanceOf(RemoteError)
  })

  test('is not looked for in a reference whose name only ends like it', async () => {
    const { base } = await cloneOf(S1)
    bare('update-ref', `refs/heads/${REF}`, base)
    expect(await clones.remoteRef(remote, REF, never)).toBeNull()
    bare('update-ref', REF, base)
    expect(await clones.remoteRef(remote, REF, never)).toBe(base)
  })

  test('of a take-over says whose it is, and carries on what there was', async () => {
    const { mirror, base } = await cloneOf(S1)
    const first = await clones.marker(mirror, { from: null, tip: base, session: S1, epoch: 4 }, never)
    expect(await readCarried(clones.setting(mirror), first)).toMatchObject({ session: S1, epoch: 4, events: 0 })
    const carried = await readCarried(clones.setting(mirror), first)
    const next = await clones.marker(mirror, { from: carried, tip: base, session: S1, epoch: 5 }, never)
    expect(await readCarried(clones.setting(mirror), next)).toEqual({ ...carried, commit: next, epoch: 5 })
    await clones.push(mirror, { remote, ref: REF, commit: next, expected: null }, never)
    const other = await Clones.open({ root: join(place.base, 'second'), keep: 1, env: place.environment() })
    const theirs = await other.fetch(remote, S1, never)
    await other.fetchRef(remote, REF, theirs, never)
    expect(place.gitIn(theirs, 'rev-parse', `${REF}^1`)).toBe(first)
  })
})

describe('the result of a session', () => {
  /** What a clone has come to, packed as it is carried. */
  async function packed(folder: string) {
    const env = place.environment()
    const prints = await openFingerprints({
      gitDir: join(place.base, 'records/git'),
      directory: folder,
      repository: await findRepository(folder),
      env,
      onWarning: warning => expect(warning).toBe(''),
    })
    await using savepoints = openSavepoints(prints, { onWarning: warning => expect(warning).toBe('') })
    await savepoints.keep({ session: S1, round: 1, tree: await prints.take(), at: 1_000 })
    const none = { root: join(place.base, 'none'), leaves: () => true }
    const what = { session: S1, epoch: 1, events: 1, round: 1, previous: null, at: 0 }
    const commit = await packSession(prints.git, { ...what, folders: { memory: none, records: none } }, () => {})
    const { gitDir, setting } = prints.git
    return { gitDir, commit, objects: setting.env.GIT_ALTERNATE_OBJECT_DIRECTORIES }
  }

  test('is what was committed, if that is all', async () => {
    const { folder } = await cloneOf(S1)
    writeFileSync(join(folder, 'a.txt'), 'two\n')
    place.gitIn(folder, '-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit', '-qam', 'Two')
    const { gitDir, commit, objects } = await packed(folder)
    const result = await clones.result(gitDir, commit, objects, S1, never)
    expect(result).toBe(place.gitIn(folder, 'rev-parse', 'HEAD'))
  })

  test('has one commit more with what was not, and is pushed whole', async () => {
    const { folder, base } = await cloneOf(S1)
    writeFileSync(join(folder, 'new.txt'), 'new\n')
    const { gitDir, commit, objects } = await packed(folder)
    const result = (await clones.result(gitDir, commit, objects, S1, never)) ?? ''
    const ref = `refs/heads/${branchOf(S1)}`
    expect(await clones.push(gitDir, { remote, ref, commit: result, expected: null, objects }, never)).toBe(true)
    expect(bare('rev-parse', `${ref}^`)).toBe(base)
    expect(bare('log', '-1', '--format=%an %s', ref)).toBe(`codemachine What ${S1} has left uncommitted`)
    expect(bare('ls-tree', '-r', '--name-only', ref).split('\n')).toEqual(['a.txt', 'new.txt'])
    bare('fsck', '--strict')
  })
})
