import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { reply, roundsScript, shell } from '../../../src/demo/model/reply.ts'
import { makePlace } from '../../support/place.ts'
import { says } from '../../support/rounds.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { openEngine, THREAD } from './open-engine.ts'

// The work directory lies below /tmp, where every sandbox may write: so its folders are told from that, too.
const outside = await mkdtemp('/var/tmp/codemachine-outside-')
const temporary = await mkdtemp('/var/tmp/codemachine-temporary-')
afterAll(() => Promise.all([outside, temporary].map(folder => rm(folder, { recursive: true }))))

const patch = (file: string) => `apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: ${file}\n+b\n*** End Patch\nEOF`
const SUB_REPOSITORY = 'src/api/.git/config'

test('an agent that names its folders starts in the work directory, and writes in them and the temporary ones alone', async () => {
  const files = `src/a src/api/a docs/deep/a .git/a .codemachine/a ${SUB_REPOSITORY} "$TMPDIR/a" ${outside}/a`
  const tries = [
    `echo "$PWD $CODEX_THREAD_ID" > "$TMPDIR/where"; cat README.md; for file in ${files}; do echo a > $file; done`,
    'git status --short; rm -rf src/old; mv src/api src/apis',
    patch('patched.txt'),
    patch('src/api/patched.txt'),
    'rm -rf src/api/old',
  ]
  await using model = await startScriptedModel({
    script: roundsScript([[...tries.map(each => reply(shell(each, { login: false }))), says('Done.')]]),
  })
  const config = model.codexConfig('scripted')
  await using place = await makePlace(config)
  const folders = ['src/api/old', 'src/old', 'docs/deep', '.codemachine', 'src/api/.git']
  for (const path of folders) await mkdir(join(place.directory, path), { recursive: true })
  const env = { ...place.env, TMPDIR: temporary }
  const { engine, play } = await openEngine({ directory: place.directory, env })
  try {
    const played = play(engine.prepare({ ...THREAD, writable: ['src/api', 'docs/deep'] }))
    expect(await played.outcome).toEqual({ class: 'worked', message: null })
    const { thread } = await played.event('turn-started')
    // By its thread an agent is known when its commands ask for another one.
    expect(await readFile(join(temporary, 'where'), 'utf8')).toBe(`${place.directory} ${thread}\n`)
  } finally {
    await engine.close()
  }
  expect([join(temporary, 'a'), join(outside, 'a')].map(existsSync)).toEqual([true, false])
  const there = (path: string) => existsSync(join(place.directory, path))
  expect(['src/api/a', 'docs/deep/a', 'src/api/patched.txt', 'src/old', 'src/api'].filter(there)).toHaveLength(5)
  const kept = ['src/a', '.git/a', '.codemachine/a', SUB_REPOSITORY, 'src/apis', 'patched.txt', 'src/api/old']
  expect(kept.filter(there)).toEqual([])
  // Codex writes there what it has come to trust.
  expect(await readFile(join(place.codexHome, 'config.toml'), 'utf8')).toBe(config)
})
