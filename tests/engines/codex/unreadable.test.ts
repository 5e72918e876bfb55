import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, expect, test } from 'vitest'
import { reply, roundsScript, shell } from '../../../src/demo/model/reply.ts'
import { makePlace } from '../../support/place.ts'
import { says } from '../../support/rounds.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { openEngine, THREAD } from './open-engine.ts'

// The work directory lies below /tmp, where every sandbox may write.
const temporary = await mkdtemp('/var/tmp/codemachine-temporary-')
afterAll(() => rm(temporary, { recursive: true }))

/** Each way to a file that is not to be seen, one that is there, and the traces of one that is not. */
const TRIES = [
  `{ for file in .env keys/a certs/deep/a.pem; do cat $file; head $file; cp $file "$TMPDIR"; mv $file "$TMPDIR"; done; ls keys; cat README.md; } 2>&1; true`,
  'git add README.md && git -c user.name=a -c user.email=a@b commit -qm ok && echo committed; true',
  'echo more >> src/a; echo more >> README.md; cat missing; true',
]

test.each([
  ['that may write everywhere', {}, { writes: ['README.md', 'src/a'], commits: true }],
  ['that may write in one folder', { writable: ['src'] }, { writes: ['src/a'], commits: false }],
  ['that may write nothing', { readOnly: true as const }, { writes: [], commits: false }],
])('a thread %s does not see what it is not to read, and the rest as ever', async (_, rights, { writes, commits }) => {
  await using model = await startScriptedModel({
    script: roundsScript([[...TRIES.map(each => reply(shell(each, { login: false }))), says('Done.')]]),
  })
  const config = model.codexConfig('scripted')
  await using place = await makePlace(config)
  const { directory } = place
  await execa('git', ['init', '-q'], { cwd: directory, env: place.env })
  for (const folder of ['keys', 'certs/deep', 'src']) await mkdir(join(directory, folder), { recursive: true })
  const hidden = ['.env', 'keys/a', 'certs/deep/a.pem']
  for (const file of [...hidden, 'src/a']) await writeFile(join(directory, file), `of ${file}: HIDDEN\n`)
  await writeFile(join(directory, 'README.md'), 'readable\n')
  const { engine, play } = await openEngine({
    directory,
    env: { ...place.env, TMPDIR: temporary },
    writable: [join(directory, '.git')],
  })
  const unreadable = ['.env', 'keys', 'certs/**/*.pem', 'missing'].map(path => join(directory, path))
  try {
    expect(engine.hidesFiles).toBe(true)
    const played = play(engine.prepare({ ...THREAD, ...rights, unreadable }))
    expect(await played.outcome).toEqual({ class: 'worked', message: null })
    const output = played.events
      .flatMap(event => (event.type === 'item-completed' && event.item.kind === 'command' ? event.item.output : []))
      .join('\n')
    expect(output.match(/HIDDEN/g)).toBe(null)
    expect(output.match(/^cat: (\.env|keys\/a|certs\/deep\/a\.pem): Permission denied$/gm)).toHaveLength(3)
    expect(output).toContain('\nreadable\n')
    expect(output.includes('committed')).toBe(commits)
  } finally {
    await engine.close()
  }
  const written = await Promise.all(
    [...hidden, 'README.md', 'src/a'].map(async file => [file, await readFile(join(directory, file), 'utf8')] as const),
  )
  expect(written.filter(([, text]) => text.endsWith('more\n')).map(([file]) => file)).toEqual(writes)
  expect(written.filter(([, text]) => text.includes('HIDDEN'))).toHaveLength(4)
  expect((await readdir(temporary)).filter(name => ['.env', 'a', 'a.pem'].includes(name))).toEqual([])
  // Codex writes there what it has come to trust.
  expect(await readFile(join(place.codexHome, 'config.toml'), 'utf8')).toBe(config)
})

test('where there is no sandbox to keep them from it, threads read what they are not to', async () => {
  await using place = await makePlace('')
  const { engine } = await openEngine({ directory: place.directory, env: place.env, sandbox: 'danger-full-access' })
  expect(engine.hidesFiles).toBe(false)
  await engine.close()
})
