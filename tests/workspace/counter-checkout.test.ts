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
