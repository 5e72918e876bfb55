import { execFileSync } from 'node:child_process'
import { appendFile, mkdtemp, readdir, readFile, realpath, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { searchFiles } from '../../src/secrets/search.ts'
import { promise } from '../support/promise.ts'

const VALUE = 'sk-live/ü+0123456789?>~abcdef'
const NAME = VALUE.replaceAll('/', '-')
let directory: string
let since: number
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'search-git-')))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const env = {
  ...{ PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
  ...{ GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b.c', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b.c' },
}
/** Runs lines in the directory, with the value as a variable. */
const sh = (script: string) =>
  execFileSync('bash', ['-ec', script], { cwd: directory, env: { ...env, KEY: VALUE, NAME }, encoding: 'utf8' })
const search = (secrets = [{ name: 'KEY', value: VALUE }]) =>
  searchFiles(directory, { since, secrets, signal: new AbortController().signal, now: () => 0 })
const pathOf = (id: string) => `.git/objects/${id.slice(0, 2)}/${id.slice(2)}`
/** A repository with a file in a commit, in which nothing is new. */
const begin = (format = 'sha1') => {
  sh(`git init -q --object-format=${format} .; seq 3000 > numbers; git add -A; git commit -qm first; git gc -q`)
  since = Date.now() + 60_000
}

describe('a secret that git has kept is found in what keeps it, though the file is gone', () => {
  promise(
    'T54',
    "A secret that a command commits, stages or stashes is found in git's objects and packs, said at once, and read by no agent, though the file is gone",
  )
  test.each([
    ['committed', 'echo "a $KEY b" > f; git add f; git commit -qm x; git rm -q f; git commit -qm y', 'HEAD~1:f'],
    ['only added', 'echo "$KEY" > f; git add f; git rm -qf --cached f; rm f', null],
    ['stashed', 'echo "$KEY" >> numbers; git stash -q; git stash drop -q', null],
    [
      'amended',
      'echo "$KEY" > f; git add f; git commit -qm x; git rm -q f; git commit -q --amend -m y --allow-empty',
      null,
    ],
    ['encoded', 'printf %s "$KEY" | base64 -w 9 > f; git add f; git commit -qm x; rm f', 'HEAD:f'],
    ['in a message', 'git commit -q --allow-empty -m "with $KEY"; rm .git/COMMIT_EDITMSG .git/logs -r', 'HEAD'],
    ['in the name of a file', 'mkdir d; touch "d/$NAME"; git add d; git commit -qm x; rm -r d .git/index', null],
    ['in a tag', 'git tag -a v1 -m "with $KEY"', 'v1'],
    ['hashed in', 'printf "%s" "$KEY" | git hash-object -w --stdin >/dev/null', null],
  ])('%s: it is found in the object that keeps it', async (what, script, object) => {
    begin()
    const value = what === 'in the name of a file' ? NAME : VALUE
    const before = sh('find .git/objects -type f')
    since = 0
    sh(script)
    const made = sh('find .git/objects -type f')
      .split('\n')
      .filter(path => !before.includes(path))
    const { files, problem } = await search([{ name: 'KEY', value }])
    expect(problem).toBeNull()
    const found = files.filter(path => path.startsWith('.git/objects/'))
    expect(found.length).toBeGreaterThan(0)
    expect(made.length).toBeGreaterThan(0)
    if (object !== null) expect(found).toContain(pathOf(sh(`git rev-parse '${object}'`).trim()))
    expect(found.filter(path => path.endsWith('.pack'))).toEqual([])
  })
})

describe('a secret in a pack is found', () => {
  const versions =
    'for n in $(seq 6); do seq $n 2000 > f; echo "$KEY $n" >> f; seq 3000 9000 >> f; git add f; git commit -qm $n; done; git rm -q f; git commit -qm gone;'
  promise('T54')
  test.each(['sha1', 'sha256'])('of %s, though it is stored as differences', async format => {
    begin(format)
    sh(`${versions} git gc -q --aggressive`)
    since = 0
    const { files, problem } = await search()
    const packs = (await readdir(join(directory, '.git/objects/pack'))).filter(name => name.endsWith('.pack'))
    expect([files, problem]).toEqual([[`.git/objects/pack/${packs[0]}`], null])
  })

  test('where one half stands in one object and the other in its difference', async () => {
    const half = VALUE.slice(0, 18)
    begin()
    const common = 'seq 1000 5000; printf %s'
    sh(`(seq 1000 5000; printf %s '${half}'; seq 6000 9000) > f; git add f; git commit -qm a`)
    sh(`(${common} "$KEY"; seq 6000 9000) > g; git add g; git commit -qm b; git rm -q f g; git commit -qm c; git gc -q`)
    // Nothing of the value is stored as it is.
    const [pack = ''] = sh('ls .git/objects/pack/*.pack').trim().split('\n')
    expect(sh(`git verify-pack -v ${pack}`)).toMatch(/chain length = 1/)
    since = 0
    expect((await search()).files).toEqual([pack])
  })

  test('whose objects name their bases by id, in whatever order', async () => {
    begin()
    sh(`${versions} git -c repack.useDeltaBaseOffset=false repack -q -a -d -f; git prune-packed; git prune`)
    since = 0
    expect((await search()).files).toEqual([expect.stringMatching(/^\.git\/objects\/pack\/.+\.pack$/)])
  })

  test('that is a bundle', async () => {
    begin()
    sh(`${versions} git bundle create -q all.bundle --all; rm -r .git`)
    since = 0
    expect(await search()).toEqual({ files: ['all.bundle'], problem: null })
  })
})

test('a pack that is as it was is not searched, and one without the secret is not found', async () => {
  begin()
  sh('echo "$KEY" > f; git add f; git commit -qm x; git rm -q f; git commit -qm y; git gc -q')
  expect(await search()).toEqual({ files: [], problem: null })
  since = 0
  expect(await search([{ name: 'OTHER', value: 'another-0815-value' }])).toEqual({ files: [], problem: null })
})

test('a pack that an agent has broken is said, and keeps nobody from searching the rest', async () => {
  begin()
  const [pack = ''] = sh('ls .git/objects/pack/*.pack').trim().split('\n')
  await writeFile(join(directory, 'last.txt'), VALUE)
  const bytes = await readFile(join(directory, pack))
  sh(`chmod u+w ${pack}`)
  since = 0
  const cases: [string, () => Promise<void>][] = [
    ['cut', () => truncate(join(directory, pack), Math.floor(bytes.length / 2))],
    [
      'rubbish',
      () => writeFile(join(directory, pack), Buffer.concat([bytes.subarray(0, 12), Buffer.alloc(9000, 255)])),
    ],
    [
      'too large',
      () =>
        writeFile(
          join(directory, pack),
          Buffer.concat([bytes.subarray(0, 12), Buffer.from([0xbf, 0xff, 0xff, 0xff, 0x0f])]),
        ),
    ],
    ['another version', () => writeFile(join(directory, pack), 'PACK\0\0\0\x09\0\0\0\x01')],
    ['nothing', () => writeFile(join(directory, pack), 'PACK')],
  ]
  for (const [what, damage] of cases) {
    await damage()
    const { files, problem } = await search()
    expect(files, what).toEqual(['last.txt'])
    expect(problem, what).toMatch(
      /^"\.git\/objects\/pack\/pack-.+\.pack" cannot be searched for secrets: it (?:has|is) .+\.$/,
    )
  }
})

test('what unpacks to more than may be searched ends the search, and what only looks compressed is read as it is', async () => {
  since = 0
  await writeFile(join(directory, 'bomb'), deflateSync(Buffer.alloc(64 * 1024 * 1024)))
  const limits = { files: 1_000, bytes: 8 * 1024 * 1024, ms: 60_000 }
  const secrets = [{ name: 'KEY', value: VALUE }]
  const options = { since, secrets, signal: new AbortController().signal, now: () => 0, limits }
  expect((await searchFiles(directory, options)).problem).toMatch(/^Too many files/)
  await rm(join(directory, 'bomb'))
  await writeFile(join(directory, 'looks'), `x\x9c${VALUE}`, 'latin1')
  await appendFile(join(directory, 'looks'), VALUE)
  expect(await searchFiles(directory, options)).toEqual({ files: ['looks'], problem: null })
  expect((await stat(join(directory, 'looks'))).size).toBeGreaterThan(30)
})
