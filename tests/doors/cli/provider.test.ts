import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { codemachine } from '../../support/codemachine.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { describe, test } from '../../support/side-by-side.ts'

describe('a provider of the person’s own works, their config.toml stays as it was, and the repository’s is not loaded', () => {
  test.each(['read-only', 'workspace-write', 'danger-full-access'])('with the sandbox %s', async sandbox => {
    await using scene = await openRealScene([round(claimDone)])
    const { codexHome, directory } = scene.place
    await mkdir(join(directory, '.codex'))
    await writeFile(join(directory, '.codex', 'config.toml'), 'model = "other"\n')
    const before = readFileSync(join(codexHome, 'config.toml'))
    expect(await scene.run('--sandbox', sandbox, 'build X')).toMatchObject({ exitCode: 0 })
    expect(readFileSync(join(codexHome, 'config.toml'))).toEqual(before)
    expect(new Set(scene.model.requests.map(({ model }) => model))).toEqual(new Set(['scripted']))
  })
})

promise('E19', 'Another provider, model and effort reach codex')
test('model, effort and -c of the command line reach codex', async () => {
  await using scene = await openRealScene([round(claimDone)])
  const flags = ['-m', 'gpt-5.5', '--effort', 'high', '-c', 'model_verbosity="low"']
  expect(await scene.run(...flags, 'build X')).toMatchObject({ exitCode: 0 })
  expect(scene.model.requests[0]).toMatchObject({
    model: 'gpt-5.5',
    effort: 'high',
    body: { text: { verbosity: 'low' } },
  })
})

describe('the CODEX_HOME that is used', () => {
  test.each([
    ['that of codemachine login, once there is a login', true, {}, 'codemachine'],
    ['the person’s own while there is none', false, {}, 'own'],
  ])('is %s', async (_which, login, env, used) => {
    await using scene = await openRealScene([round(claimDone)])
    const { place } = scene
    const homes = { own: place.codexHome, codemachine: join(place.home, '.codemachine', 'codex') }
    await mkdir(homes.codemachine, { recursive: true, mode: 0o700 })
    await writeFile(join(homes.codemachine, 'config.toml'), readFileSync(join(homes.own, 'config.toml')))
    const auth = JSON.stringify({ auth_mode: 'apikey', OPENAI_API_KEY: 'sk-test' })
    if (login) await writeFile(join(homes.codemachine, 'auth.json'), auth, { mode: 0o600 })
    expect(await codemachine(place, ['build X'], { env })).toMatchObject({ exitCode: 0 })
    expect(
      Object.entries(homes)
        .filter(([, home]) => existsSync(join(home, 'sessions')))
        .map(([name]) => name),
    ).toEqual([used])
  })
})
