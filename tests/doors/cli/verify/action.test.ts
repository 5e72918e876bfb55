import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { marked, type Token } from 'marked'
import { expect } from 'vitest'
import { codemachineHere } from '../../../support/in-process.ts'
import { git, makePlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { test } from '../../../support/side-by-side.ts'
import { runnerOf } from './action-run.ts'
import { agentKey } from './agent-key.ts'
import { endSession, gate } from './done-session.ts'

const HOSTILE = '<img src=x> @team [a](https://x.example) | `b` ::error::no'
/** Fails where anything of the step is in its environment. */
const NO_TOKEN = 'test -z "$INPUT_TOKEN$GITHUB_EVENT_PATH$GITHUB_ACTIONS" && grep -q good app.txt'

/** A session that is done, with its work and its signed note on `main`. */
async function noted() {
  const place = await makePlace('')
  using key = await agentKey(place)
  await writeFile(join(place.directory, 'app.txt'), 'good\n')
  await endSession(place, [gate(NO_TOKEN, HOSTILE)])
  git(place, 'add', '-A')
  git(place, 'commit', '-qm', 'Work')
  await codemachineHere(place, ['certificate', '--sign', key.path, '--note'], key)
  return { ...place, signers: key.signers, head: git(place, 'rev-parse', 'HEAD') }
}

promise(
  'D99',
  'A CI job verifies the certificate of a pull request: its head, by signers of the base branch, without a token',
)
test('the action proves the head of a pull request, not how it is merged, and shows what a stranger wrote as text', async () => {
  await using place = await noted()
  await using runner = await runnerOf(place, place.signers)
  const { exitCode, log, summary } = await runner.step(place.head)
  expect([exitCode, log]).toEqual([0, expect.stringContaining('failures: none: ')])
  expect(git(runner, 'rev-parse', 'HEAD')).toBe(place.head)
  expect(summary).toMatch(/^## Certificate passed: still true\n/)
  expect(summary).toContain('| origin | signed by ann\\@example.com (SHA256:')
  expect(summary).toContain('- The sentences of the goal: it had no contract.')
  const types = new Set<string>()
  void marked.walkTokens(marked.lexer(summary), ({ type }: Token) => void types.add(type))
  expect([...types].filter(type => ['html', 'link', 'image', 'code'].includes(type))).toEqual([])
  expect(summary).not.toMatch(/(?<!\\)@/)
  const [stopped = '', ...rest] = log.split('\n')
  const [, token = ''] = /^::stop-commands::([0-9a-f-]{36})$/.exec(stopped) ?? []
  expect(rest.filter(line => line.startsWith('::'))).toEqual([`::${token}::`])

  const proved = await runner.step(place.head, { REQUIRE: 'proved' })
  expect(proved.exitCode).toBe(4)
  expect(proved.log).toMatch(/^::error title=codemachine::Certificate failed: it had no contract$/m)
})

promise('D99')
test('the action fails where the note was tampered with or is not signed, or the head has other files', async () => {
  await using place = await noted()
  await using runner = await runnerOf(place, place.signers)
  const note = ['notes', '--ref=codemachine']
  const whole = git(place, ...note, 'show', place.head)
  const put = (text: string) => git(place, ...note, 'add', '-f', '-m', text, place.head)
  put(whole.replace(/"payload":"(....)/, '"payload":"$1AAAA'))
  const tampered = await runner.step(place.head)
  expect([tampered.exitCode, tampered.summary]).toEqual([2, expect.stringMatching(/^## Certificate failed: /)])
  expect(tampered.log).toMatch(/^::error title=codemachine::Certificate failed: /m)

  const payloads = whole.split('\n').map(line => Buffer.from(JSON.parse(line).payload, 'base64').toString())
  put(payloads.join('\n'))
  const unsigned = await runner.step(place.head)
  expect([unsigned.exitCode, unsigned.summary]).toEqual([2, expect.stringContaining('is not signed')])
  const nobody = await runner.step(place.head, { SIGNERS: '' })
  expect([nobody.exitCode, nobody.summary]).toEqual([2, expect.stringContaining('The input signers is missing')])
  const anybody = await runner.step(place.head, { SIGNERS: 'anybody', RUN: 'false' })
  expect([anybody.exitCode, anybody.summary]).toEqual([0, expect.stringContaining('- Who made it: it is not signed.')])

  put(whole)
  await writeFile(join(place.directory, 'app.txt'), 'good, and more\n')
  await writeFile(join(place.directory, 'allowed_signers'), '')
  git(place, 'add', '-A')
  git(place, 'commit', '-qm', 'More')
  const later = await runner.step(git(place, 'rev-parse', 'HEAD'))
  expect(later.exitCode).toBe(4)
  expect(later.summary).toMatch(/^## Certificate failed: these are not the files that were proved\n/)
})
