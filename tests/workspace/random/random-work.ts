import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { emptyState } from '../../../src/core/state/state.ts'
import { type Fingerprints, openFingerprints } from '../../../src/workspace/fingerprint/fingerprint.ts'
import { followIgnoreRules, lookBySessionRules } from '../../../src/workspace/fingerprint/session-rules.ts'
import { findRepository } from '../../../src/workspace/git/git.ts'
import { type Random, randomFrom } from '../../support/random.ts'

const NAMES = ['a', 'b', 'c.log', 'd.ts', 'é', 'ig', 'zz', '.gitignore', 'x y', 'never', 'b.a', 'b0', '.env'] as const
const RULES = ['a\n', '*.ts\n', '!c.log\n', 'b/\n', ''] as const

/**
 * Does work at random in a directory, which is a repository, lies in one, or in none, and takes its fingerprint after each step:
 * once by who has taken the last one, and once by a new one on an index of its own that takes nothing for granted. They have to
 * be the same.
 */
export async function compareWithNew(seed: number, steps: number): Promise<void> {
  const random = randomFrom(seed)
  await using place = makePlace(random)
  const kept = await place.open('kept')
  let before = await kept.take()
  expect(await (await place.open('new')).take()).toBe(before)
  for (let step = 0; step < steps; step++) {
    const done = work(random, place.directory)
    const after = await kept.take()
    const fresh = await place.open('new')
    fresh.takeNothingForGranted()
    const where = `seed ${seed}, step ${step}: ${done.join('; ')}`
    expect(after, where).toBe(await fresh.take())
    expect(await kept.changed(before, after), where).toEqual(await fresh.changed(before, after))
    expect(kept.leftOut(), where).toEqual(fresh.leftOut())
    before = after
  }
  place.check('kept')
}

interface Place extends AsyncDisposable {
  directory: string
  open(name: string): Promise<Fingerprints>
  /** Has git read every object that was stored. */
  check(name: string): void
}

function makePlace(random: Random): Place {
  const base = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), 'random-'))
  const top = join(base, 'wörk')
  const env = { PATH: process.env.PATH, HOME: base, GIT_CONFIG_NOSYSTEM: '1' }
  const git = (args: string[], more: NodeJS.ProcessEnv = {}) =>
    void execFileSync('git', ['-c', 'user.name=p', '-c', 'user.email=p@example.org', ...args], {
      cwd: top,
      env: { ...env, ...more },
      stdio: 'pipe',
    })
  fs.mkdirSync(top)
  const isRepository = random.below(3) > 0
  if (isRepository) {
    git(['init', '-q'])
    fs.writeFileSync(join(top, '.gitignore'), 'ig/\n*.log\n')
    git(['add', '-A'])
    git(['commit', '-qm', 'x'])
  }
  const directory = random.below(3) > 0 ? top : join(top, 'sub')
  fs.mkdirSync(directory, { recursive: true })
  const rules = join(base, 'rules')
  const hasRules = random.below(2) === 0
  return {
    directory,
    async open(name) {
      const repository = await findRepository(directory)
      const leaveOut = [join(directory, 'never')]
      const prints = await openFingerprints({ gitDir: join(base, name), directory, repository, env, leaveOut })
      if (hasRules && fs.existsSync(rules)) await followIgnoreRules(prints, rules)
      else if (hasRules) {
        const ending = new AbortController().signal
        const state = () => emptyState('20261121_1')
        await lookBySessionRules(prints, { path: rules, ending, state, onRemark: () => {} }).take()
      }
      return prints
    },
    check: name =>
      git(['fsck', '--no-dangling'], {
        GIT_DIR: join(base, name),
        ...(isRepository && { GIT_ALTERNATE_OBJECT_DIRECTORIES: join(top, '.git/objects') }),
      }),
    async [Symbol.asyncDispose]() {
      fs.rmSync(base, { recursive: true, force: true })
    },
  }
}

/** One to four things that an agent may do; answers what it did. What cannot be done there is not. */
function work(random: Random, directory: string): string[] {
  const done: string[] = []
  const somewhere = () => {
    const names = Array.from({ length: random.below(4) + 1 }, () => random.one(NAMES))
    return join(directory, ...names)
  }
  for (let left = random.below(4); left >= 0; left--) {
    const path = somewhere()
    const action = random.one(ACTIONS)
    done.push(`${action.name} ${path.slice(directory.length)}`)
    try {
      action(path, random, somewhere)
    } catch {}
  }
  return done
}

const ACTIONS = [
  function writes(path: string, random: Random) {
    fs.mkdirSync(dirname(path), { recursive: true })
    fs.writeFileSync(path, path.endsWith('.gitignore') ? random.one(RULES) : String(random.below(5)))
  },
  function writesAnother(path: string, random: Random) {
    fs.mkdirSync(dirname(path), { recursive: true })
    fs.writeFileSync(path, 'x'.repeat(random.below(9)))
  },
  function removes(path: string) {
    fs.rmSync(path, { recursive: true, force: true })
  },
  function links(path: string, random: Random) {
    fs.mkdirSync(dirname(path), { recursive: true })
    fs.symlinkSync(random.one(NAMES), path)
  },
  function makesExecutable(path: string) {
    fs.chmodSync(path, 0o755)
  },
  function renames(path: string, _: Random, somewhere: () => string) {
    fs.renameSync(path, somewhere())
  },
  function makesFolder(path: string) {
    fs.mkdirSync(path, { recursive: true })
  },
  function makesRepository(path: string) {
    fs.mkdirSync(join(path, '.git/refs'), { recursive: true })
    fs.mkdirSync(join(path, '.git/objects'))
    fs.writeFileSync(join(path, '.git/HEAD'), 'ref: refs/heads/main\n')
    fs.writeFileSync(join(path, 'n'), 'n')
  },
  function linksHard(path: string, _: Random, somewhere: () => string) {
    fs.linkSync(path, somewhere())
  },
  function writesThroughAnother(path: string, random: Random) {
    fs.writeFileSync(`${path}~`, String(random.below(5)))
    fs.renameSync(`${path}~`, path)
  },
  function swaps(path: string, _: Random, somewhere: () => string) {
    const other = somewhere()
    fs.renameSync(path, `${path}~`)
    fs.renameSync(other, path)
    fs.renameSync(`${path}~`, other)
  },
  function closesAndOpens(path: string) {
    const { mode } = fs.statSync(path)
    fs.chmodSync(path, 0o700)
    fs.chmodSync(path, mode ^ 0o010)
  },
  function copiesWithTimes(path: string, _: Random, somewhere: () => string) {
    fs.cpSync(path, somewhere(), { recursive: true, preserveTimestamps: true })
  },
  function changesAndSetsTimeBack(path: string) {
    const { atime, mtime } = fs.statSync(path)
    fs.appendFileSync(path, 'y')
    fs.utimesSync(path, atime, mtime)
  },
] as const
