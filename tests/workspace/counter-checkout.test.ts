import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { openCounterCheckout } from '../../src/workspace/counter-checkout.ts'
import { openFingerprints } from '../../src/workspace/fingerprint/fingerprint.ts'
import { findRepository } from '../../src/workspace/git/git.ts'

test('a copy has the installed packages, also where the tree has one program of them that a gate runs', async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'codemachine-copy-')))
  const work = join(base, 'work')
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(work, path)), { recursive: true })
    writeFileSync(join(work, path), text)
  }
  try {
    write('.gitignore', 'node_modules\n')
    write('node_modules/tape/bin/tape.js', 'runs')
    write('node_modules/tape/index.js', 'tape')
    write('node_modules/other/index.js', 'other')
    mkdirSync(join(work, 'node_modules/.bin'))
    symlinkSync('../tape/bin/tape.js', join(work, 'node_modules/.bin/tape'))
    symlinkSync('../other/index.js', join(work, 'node_modules/.bin/other'))
    execFileSync('git', ['init', '-q'], { cwd: work })
    const env = { PATH: process.env.PATH, HOME: join(base, 'home') }
    const prints = await openFingerprints({
      gitDir: join(base, 'git'),
      directory: work,
      repository: await findRepository(work),
      env,
    })
    prints.protect(['node_modules/.bin/tape', 'node_modules/tape/bin/tape.js'])
    const tree = await prints.take()
    const opened = await openCounterCheckout({ git: prints.git, key: 'test', start: tree, tree })
    if ('problem' in opened) throw new Error(opened.problem)
    await using copy = opened
    const laid = await copy.lay(tree, prints.git.prefix, [])
    if ('problem' in laid) throw new Error(laid.problem)
    const read = (path: string) => readFileSync(join(laid.directory, 'node_modules', path), 'utf8')
    expect(['.bin/tape', '.bin/other', 'tape/index.js', 'other/index.js'].map(read)).toEqual([
      'runs',
      'other',
      'tape',
      'other',
    ])
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})

test('a tree that is too large is told by whose files it is', async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'codemachine-large-')))
  const work = join(base, 'work')
  mkdirSync(work)
  try {
    execFileSync('git', ['init', '-q'], { cwd: work })
    const env = { PATH: process.env.PATH, HOME: join(base, 'home') }
    const { git, take } = await openLarge(base, work, env)
    const small = await take()
    const objects = { cwd: work, env: { ...process.env, GIT_DIR: git.gitDir }, encoding: 'utf8' as const }
    const blob = execFileSync('git', ['hash-object', '-w', '--stdin'], { ...objects, input: '' }).trim()
    const entries = Array.from({ length: 50_001 }, (_, n) => `100644 blob ${blob}\t${n}\n`).join('')
    const large = execFileSync('git', ['mktree'], { ...objects, input: entries }).trim()
    const problem = expect.stringContaining('too large (50001 files')
    const opened = (start: string, tree: string) => openCounterCheckout({ git, key: 'test', start, tree })
    expect(await opened(small, large)).toEqual({ problem, byWork: true })
    expect(await opened(large, small)).toEqual({ problem, byWork: false })
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})

async function openLarge(base: string, directory: string, env: Record<string, string | undefined>) {
  const gitDir = join(base, 'git')
  const prints = await openFingerprints({ gitDir, directory, repository: await findRepository(directory), env })
  return { git: prints.git, take: () => prints.take() }
}
