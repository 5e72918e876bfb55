import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Fingerprints, openFingerprints } from '../../../src/workspace/fingerprint/fingerprint.ts'
import { openSavepoints } from '../../../src/workspace/savepoints/savepoint-writer.ts'

const SESSION = '20261121_1'
let base: string
let work: string

beforeEach(() => {
  base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'known-')))
  work = join(base, 'work')
  fs.mkdirSync(work)
})

afterEach(() => {
  for (const name of fs.readdirSync(work)) if (name === 'closed') fs.chmodSync(join(work, name), 0o755)
  fs.rmSync(base, { recursive: true, force: true })
})

describe('a fingerprint that is taken by what is known of the last one is that of git', () => {
  it.each(['.GIT/x', 'folder/.Git'])('where a name is one that git refuses (%s)', async path => {
    expect(await pathsAfter(() => write(path, '1'))).toEqual(['a'])
  })

  it('where .gitmodules is a link, which git refuses', async () => {
    expect(await pathsAfter(() => fs.symlinkSync('a', join(work, '.gitmodules')))).toEqual(['a'])
  })

  it.skipIf(process.platform === 'win32')(
    'where a file has taken the name of a pipe (skipped on Windows, which has none)',
    async () => {
      const path = join(work, 'pipe')
      execFileSync('mkfifo', [path])
      const paths = await pathsAfter(() => {
        fs.rmSync(path)
        fs.writeFileSync(path, '1')
      })
      expect(paths).toEqual(['a', 'pipe'])
    },
  )

  it.skipIf(process.platform !== 'linux')(
    'where a file lies so deep that its whole path is too long for the system (skipped off Linux, which has other bounds)',
    async () => {
      const paths = await pathsAfter(() => makeDeep('f'))
      expect(paths.map(path => path.split('/').at(-1))).toEqual(['a', 'f'])
    },
  )

  it.skipIf(process.getuid?.() === 0)(
    'where a folder may not be searched any more (skipped for root, who may)',
    async () => {
      write('closed/b', '1')
      expect(await pathsAfter(() => fs.chmodSync(join(work, 'closed'), 0o444))).toEqual(['a', 'closed/b'])
    },
  )
})

describe('what is known of the last fingerprint and stands in no index yet', () => {
  it('is there for the next run, too, where it is ignored since', async () => {
    const rules = join(base, 'rules')
    fs.writeFileSync(rules, 'build/\n')
    const openByRules = async () => {
      const prints = await open('known')
      prints.ignoreBy(rules)
      return prints
    }
    write('.gitignore', '')
    const prints = await openByRules()
    await prints.take()
    await prints.take()
    write('build/x', '1')
    await prints.take()
    write('.gitignore', 'build/\n')
    const tree = await prints.take()
    expect(namesIn('known', tree)).toEqual(['.gitignore', 'build/x'])
    expect(await (await openByRules()).take()).toBe(tree)
  })

  it('is let go of, too, where what is ignored is', async () => {
    const prints = await open('known')
    write('a', '1')
    await prints.take()
    await prints.take()
    write('ignored', '1')
    await prints.take()
    write('.gitignore', 'ignored\n')
    expect(namesIn('known', await prints.take())).toEqual(['.gitignore', 'a', 'ignored'])
    await prints.lookByRulesOfNow()
    expect(namesIn('known', await prints.take())).toEqual(['.gitignore', 'a'])
  })
})

describe('a savepoint that codemachine stores itself', () => {
  it('is whole where nothing is left in the work directory', async () => {
    const prints = await open('known')
    await using savepoints = openSavepoints(prints)
    write('a', '1')
    await savepoints.keep({ session: SESSION, round: 0, tree: await prints.take(), at: 0 })
    await prints.take()
    fs.rmSync(join(work, 'a'))
    expect(await savepoints.keep({ session: SESSION, round: 1, tree: await prints.take(), at: 1000 })).not.toBeNull()
    checkObjects('known')
  })

  it('is whole where somebody has deleted all of them, and nothing has changed since', async () => {
    const warnings: string[] = []
    const prints = await open('known')
    await using savepoints = openSavepoints(prints, { onWarning: text => warnings.push(text) })
    write('a', '1')
    await savepoints.keep({ session: SESSION, round: 0, tree: await prints.take(), at: 0 })
    fs.rmSync(join(base, 'known'), { recursive: true })
    expect(await savepoints.keep({ session: SESSION, round: 1, tree: await prints.take(), at: 1000 })).not.toBeNull()
    checkObjects('known')
    expect(warnings).toEqual([expect.stringMatching(/^Savepoints before that of round 1 are gone/)])
  })

  it('is whole where somebody has pruned what no savepoint has, and a file has that content again', async () => {
    const prints = await open('known')
    await using savepoints = openSavepoints(prints)
    const keep = async (round: number) =>
      savepoints.keep({ session: SESSION, round, tree: await prints.take(), at: round * 1000 })
    write('a', '1')
    await keep(0)
    write('a', '2')
    await prints.take()
    write('a', '3')
    await keep(1)
    runGit('known', ['prune', '--expire=now'])
    write('a', '2')
    expect(await keep(2)).not.toBeNull()
    checkObjects('known')
  })

  it('can be made again once what was in its way is gone', async () => {
    const prints = await open('known')
    await using savepoints = openSavepoints(prints)
    write('a', '1')
    const keep = async () => savepoints.keep({ session: SESSION, round: 0, tree: await prints.take(), at: 0 })
    const inTheWay = join(base, `known/refs/savepoints/${SESSION}/000`)
    fs.mkdirSync(join(inTheWay, 'x'), { recursive: true })
    expect(await keep()).toBeNull()
    fs.rmSync(inTheWay, { recursive: true })
    expect(await keep()).not.toBeNull()
  })

  it('has few files open at a time, however many are new', async () => {
    const prints = await open('known')
    for (let n = 0; n < 300; n++) prints.objects.write('blob', Buffer.from(`${n}`))
    let most = 0
    const count = () => {
      const open = process.getActiveResourcesInfo().filter(kind => kind === 'FSReqPromise').length
      most = Math.max(most, open)
    }
    const synced = prints.objects.sync()
    count()
    await synced
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThan(100)
  })
})

/** The paths in the fingerprint after something was done, which are those of git alone. */
async function pathsAfter(act: () => void): Promise<string[]> {
  write('a', '1')
  const [known, byGit] = [await open('known'), await open('by-git')]
  await byGit.take()
  await known.take()
  await known.take()
  act()
  const trees: string[] = []
  // git has to look at last where it has had to several times.
  for (let n = 0; n < 5; n++) trees.push(await known.take())
  expect(new Set(trees)).toEqual(new Set([await byGit.take()]))
  return namesIn('known', trees[0] ?? '')
}

async function open(name: string): Promise<Fingerprints> {
  const env = { PATH: process.env.PATH, HOME: base }
  return await openFingerprints({ gitDir: join(base, name), directory: work, repository: null, env })
}

/** Fails where an object is missing, or broken. */
function checkObjects(name: string): void {
  runGit(name, ['fsck', '--full'])
}

function runGit(name: string, args: readonly string[]): string {
  return execFileSync('git', args, {
    env: { ...process.env, GIT_DIR: join(base, name) },
    encoding: 'utf8',
    stdio: 'pipe',
  })
}

function namesIn(name: string, tree: string): string[] {
  return runGit(name, ['ls-tree', '-r', '-z', '--name-only', tree]).split('\0').slice(0, -1)
}

function write(path: string, text: string): void {
  fs.mkdirSync(dirname(join(work, path)), { recursive: true })
  fs.writeFileSync(join(work, path), text)
}

/** No call takes its whole path, so it is made folder by folder. */
function makeDeep(name: string): void {
  const script = `for (let n = 0; n < 20; n++) { fs.mkdirSync('d'.repeat(200)); process.chdir('d'.repeat(200)) }
    fs.mkdirSync('e'.repeat(60)); process.chdir('e'.repeat(60)); fs.writeFileSync(${JSON.stringify(name)}, '1')`
  execFileSync(process.execPath, ['-e', script], { cwd: work })
}
