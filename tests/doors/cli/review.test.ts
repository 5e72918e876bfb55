import { existsSync, readdirSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ScriptStep } from '../../../src/demo/model/reply.ts'
import { message, reply, shell } from '../../../src/demo/model/reply.ts'
import { git, pipeAsObject } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { IMPATIENT, openRealScene } from '../../support/real-scene.ts'
import { held, round, says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { hold } from '../../support/scripted-model.ts'

const FINDING = { severity: 'major', file: 'a.txt', line: 1, problem: 'It says hell\u001b[31mo.', mend: 'Say bye.' }
const disagrees = JSON.stringify({ verdict: 'findings', summary: 'Not yet.', findings: [FINDING] })
const agrees = JSON.stringify({ verdict: 'agreed', summary: 'All of it is there.', findings: [] })

test('what is not committed is reviewed by a goal, by a reviewer that changes nothing', async () => {
  await using scene = await openRealScene([
    [reply(message('Looking.'), shell('cat a.txt; touch x; git status --short; rm -f a.txt')), says(disagrees)],
    [says(`Here it is:\n\`\`\`json\n${agrees}\n\`\`\``)],
    [says('It looks fine to me.')],
  ])
  const { directory } = scene.place
  expect(await scene.run('review', '--goal', 'Say bye.')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('There is nothing to review'),
  })
  await writeFile(join(directory, 'a.txt'), 'hello\n')
  // No gate is run here, so that one stands in the way of rounds alone.
  await writeFile(join(directory, 'codemachine.toml'), '[[gates]]\nrun = "true"\nnetwork = true\n')
  const before = git(scene.place, 'status', '--porcelain')
  const leftByKilled = join(scene.records(), 'review')
  await mkdir(leftByKilled)

  const first = await scene.run('review', '--goal', 'Say bye.')
  expect(first).toMatchObject({
    exitCode: 4,
    stdout:
      'The reviewer does not agree: 1 finding.\nNot yet.\n- major  a.txt:1  It says hell[31mo.\n  fix: Say bye.\n',
  })
  expect(first.stderr).toContain('Looking.')
  expect(first.stderr).not.toContain('verdict')
  expect(existsSync(join(directory, 'x'))).toBe(false)
  expect(existsSync(leftByKilled)).toBe(false)
  expect(git(scene.place, 'status', '--porcelain')).toBe(before)
  const [request] = scene.model.requests
  expect(request?.developerTexts.join('\n')).toContain('Assume that it is not, and look for the proof.')
  expect(scene.input(1)).toContain('Say bye.')
  expect(scene.input(1)).toContain('+++ b/a.txt\n@@ -0,0 +1 @@\n+hello\n')
  expect(request?.body.text).toMatchObject({ format: { type: 'json_schema' } })

  const second = await scene.run('review', '--goal', 'Say bye.', '--json', '--effort', 'high')
  expect(second.exitCode).toBe(0)
  expect(second.stderr).not.toMatch(/^\d\d:\d\d/m)
  expect(JSON.parse(second.stdout)).toMatchObject({
    session: null,
    effort: 'high',
    verdict: 'agreed',
    summary: 'All of it is there.',
    findings: [],
    problem: null,
  })
  expect(scene.model.requests.at(-1)?.effort).toBe('high')

  expect(await scene.run('review', '--goal', 'Say bye.')).toMatchObject({
    exitCode: 4,
    stdout: '',
    stderr: expect.stringContaining('does not contain the requested JSON object.'),
  })
})

promise('E12', '`review` looks at work that is there')
test('the work of a session is reviewed by its goal and all that it changed, committed or not', async () => {
  await using scene = await openRealScene(
    [
      round('echo one > one.txt; git add .; git commit -qm One', 'echo two > two.txt'),
      [says(agrees)],
      [{ kind: 'status', status: 401, body: { error: { message: 'No.' } } }],
    ],
    { provider: IMPATIENT },
  )
  expect(await scene.run('review')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/No sessions .*\n {2}To review uncommitted changes: .* --goal/),
  })
  await scene.run('Write both files.', '--rounds', '1', '--json')
  const journal = scene.recorded('journal.ndjson')

  expect(await scene.run('review')).toMatchObject({
    exitCode: 0,
    stdout: 'The reviewer agrees.\nAll of it is there.\n',
  })
  expect(scene.input(2)).toContain('Write both files.')
  expect(scene.input(2)).toContain('+++ b/one.txt')
  expect(scene.input(2)).toContain('+++ b/two.txt')
  expect(scene.recorded('journal.ndjson')).toBe(journal)

  expect(await scene.run('review', '1', '--goal', 'Say bye.')).toMatchObject({ exitCode: 2 })
  expect(await scene.run('review', '1')).toMatchObject({
    exitCode: 4,
    stderr: expect.stringMatching(/The review gave no answer: login: .*\n {2}Log in with codemachine login,/),
  })
})

test('what a session hid behind an ignore rule is in its review, after a later session too', async () => {
  await using scene = await openScene([
    round('echo two > two.txt', 'echo two.txt > .gitignore'),
    round('echo three > three.txt'),
    [says(agrees)],
  ])
  for (const goal of ['Write a file.', 'Write another file.']) await scene.run(goal, '--rounds', '1', '--json')
  expect(await scene.run('review', '1')).toMatchObject({ exitCode: 0 })
  expect(scene.input(3)).toContain('+++ b/two.txt')
})

promise('B50')
test('the work of a session is reviewed although git would wait at an object of the repository, which is said', async () => {
  await using scene = await openScene([round('echo one > one.txt'), [says(agrees)]])
  await scene.run('Write a file.', '--rounds', '1', '--json')
  await writeFile(join(scene.place.directory, 'one.txt'), 'two\n')
  git(scene.place, 'add', '.')
  const object = pipeAsObject(scene.place, ':one.txt')
  const { exitCode, stderr } = await scene.run('review')
  expect(stderr).toContain(`${object} is a pipe, at which git would wait for ever: codemachine reads no objects`)
  expect(exitCode).toBe(0)
  expect(scene.input(2)).toContain('+++ b/one.txt\n@@ -0,0 +1 @@\n+two\n')
})

test('while a session runs there is no review beside it', async () => {
  const release = Promise.withResolvers<void>()
  await using scene = await openScene([[held(release.promise), says('Done.')]])
  const session = scene.start('Write both files.', '--rounds', '1', '--json')
  await session.event('turn-started')
  const refused = await scene.run('review', '--goal', 'Say bye.')
  release.resolve()
  await session.ended
  expect(refused).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('is running here') })
  expect(scene.model.requests.every(({ conversation }) => conversation === 0)).toBe(true)
})

test('a review that a person breaks off says nothing and leaves nothing behind', async () => {
  const [asked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ask: ScriptStep = () => {
    asked.resolve()
    return reply(message('Looking.'), hold(release.promise))
  }
  await using scene = await openRealScene([[ask]])
  await writeFile(join(scene.place.directory, 'a.txt'), 'hello\n')
  const running = scene.start('review', '--goal', 'Say bye.')
  await Promise.race([asked.promise, running.ended])
  running.process.kill('SIGINT')
  expect(await running.ended).toMatchObject({ exitCode: 130, stdout: '' })
  release.resolve()
  expect(readdirSync(scene.records()).filter(name => /^(review|lock)/.test(name))).toEqual([])
})
