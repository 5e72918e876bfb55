import { chownSync } from 'node:fs'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reply, roundsScript, shell } from '../../../src/demo/model/reply.ts'
import { makePlace, type PlaceOptions } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { says } from '../../support/rounds.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { unless } from '../../support/skipped.ts'
import { engineNamed, play, setupIn, THREAD } from '../contract.ts'
import { endAfterEach } from './end-after-each.ts'
import { openEngine } from './open-engine.ts'

const atEnd = endAfterEach()
const signal = new AbortController().signal

/** A place, and the engine of its rounds. */
async function opened(config = '', options: PlaceOptions = {}) {
  const place = atEnd.use(await makePlace(config, options))
  const { engine, play } = await openEngine({
    directory: place.directory,
    env: place.env,
    writable: [join(place.directory, '.git')],
  })
  atEnd.defer(() => engine.close())
  return { place, engine, play, inPlace: (name: string) => join(place.directory, name) }
}

test('a sandbox that starts commands is found to, on the app-server of the next round', async () => {
  const model = atEnd.use(await startScriptedModel({ script: roundsScript([[says('Done.')]]) }))
  const { engine, play } = await opened(model.codexConfig('scripted'))
  engine.warm()
  expect(await engine.trySandbox(signal)).toBe(null)
  expect(await play().outcome).toEqual({ class: 'worked', message: null })
})

test('a codex that does not say is left to its round, which a person who stops the session later does not end', async () => {
  const place = atEnd.use(await makePlace(''))
  const path = await writePeer(place.root, "on['command/exec'] = () => {}")
  const { engine, play } = await openEngine({ path, directory: place.directory, requestMs: 1_500 })
  atEnd.defer(() => engine.close())
  engine.warm()
  const stop = new AbortController()
  expect(await engine.trySandbox(stop.signal)).toBe(null)
  stop.abort()
  expect(await play().outcome).toEqual({ class: 'worked', message: null })
})

promise('D74')
test('a link that keeps it from starting any is named, with what to do about it', async () => {
  const { place, engine, inPlace } = await opened()
  await mkdir(inPlace('rules'))
  for (const name of ['.agents', '.codex']) {
    await symlink('rules', inPlace(name))
    expect(await engine.trySandbox(signal)).toEqual({
      problem: `Codex's sandbox starts no command here: ${name} in ${place.directory} is a link, which it cannot protect.`,
      mend: `Remove it, or replace it by its target (${inPlace('rules')}).`,
    })
    await rm(inPlace(name))
  }
  const moved = join(place.root, 'repository')
  await rename(inPlace('.git'), moved)
  await symlink(moved, inPlace('.git'))
  expect(await engine.trySandbox(signal)).toMatchObject({
    mend: `Replace the link by a file: \`rm ${inPlace('.git')} && echo "gitdir: ${moved}" > ${inPlace('.git')}\`.`,
  })
})

const isRoot = process.getuid?.() === 0
const skipped = unless(isRoot, 'only root can give files to another user')

promise('D74')
test.runIf(isRoot)(
  `a work directory of another user is named, for root may not write there in it${skipped}`,
  async () => {
    const { place, engine } = await opened('', { git: false })
    chownSync(place.directory, 1234, 1234)
    expect(await engine.trySandbox(signal)).toMatchObject({
      problem: expect.stringContaining(
        `${place.directory} belongs to another user (id 1234, and this one is 0). bwrap`,
      ),
      mend: expect.stringContaining(`chown -R 0 ${place.directory}`),
    })
  },
)

promise('D75')
test.each(['codex', 'exec'])('a round of which nothing could be started has not worked: %s', async name => {
  const steps = [reply(shell('echo a > a')), reply(shell('echo b')), says('Done.')]
  const model = atEnd.use(
    await startScriptedModel({ script: roundsScript([steps, [reply(shell('exit 1')), says('No.')]]) }),
  )
  const place = atEnd.use(await makePlace(model.codexConfig('scripted')))
  const engine = await engineNamed(name).open(await setupIn(place))
  atEnd.defer(() => engine.close())
  await symlink('nowhere', join(place.directory, '.agents'))
  expect(await play(engine.prepare(THREAD)).outcome).toEqual({
    class: 'config',
    message: expect.stringMatching(/^Codex's sandbox starts no command here: \.agents in .* is a link.* Remove it/),
  })
  await rm(join(place.directory, '.agents'))
  expect(await play(engine.prepare(THREAD)).outcome).toEqual({ class: 'worked', message: null })
})

promise('D72')
test('folders that the person makes writable are so for an agent that may not read everything', async () => {
  const extra = '/var/tmp/codemachine-writable'
  await mkdir(extra, { recursive: true })
  atEnd.defer(() => rm(extra, { recursive: true }))
  const steps = [reply(shell(`cat secret; touch ${extra}/file && echo written`)), says('Done.')]
  const model = atEnd.use(await startScriptedModel({ script: roundsScript([steps]) }))
  const config = `${model.codexConfig('scripted')}\n[sandbox_workspace_write]\nwritable_roots = ["${extra}"]\n`
  const { engine, play, inPlace } = await opened(config)
  await writeFile(inPlace('secret'), 'hidden')
  expect(await engine.trySandbox(signal)).toBe(null)
  const { outcome, events } = play(engine.prepare({ ...THREAD, unreadable: [inPlace('secret')] }))
  await outcome
  expect(JSON.stringify(events)).toContain('written')
  expect(JSON.stringify(events)).not.toContain('hidden')
})
