import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import type { Decision } from '../../../src/core/rules/decision.ts'
import { decide } from '../../../src/doors/cli/commands/decide.ts'
import { openProject, processWorld, type RecordedOf } from '../../../src/index.ts'
import { cliContext } from '../../support/cli-context.ts'
import { openScene } from '../../support/scene.ts'
import { withToy } from '../../toy-template/toy.ts'

const PLAN: Decision = {
  id: 'review',
  title: 'Is the plan good?',
  body: '',
  choices: [
    { id: 'good', label: 'It is' },
    { id: 'edit', label: 'I edit it', opensFile: true },
  ],
  default: 'good',
  file: 'plan.md',
}

test('a person answers from another terminal, of the session that they mean, once they have edited the file that it is about', async () => {
  await using scene = await openScene([])
  const { place } = scene
  const path = join(place.directory, 'plan.md')
  const editor = join(place.root, 'editor')
  await writeFile(path, 'a plan\n')
  await writeFile(editor, '#!/bin/sh\necho "and more" >> "$1"\n', { mode: 0o700 })
  const templates = withToy({ steps: [{ kind: 'decide', decision: PLAN }] })
  const world = processWorld({ env: place.env, home: place.home, cwd: place.directory, templates })
  await using project = await openProject(world, { keepAwake: false })
  const { id: earlier } = await project.run('One.', { template: 'toy' })
  const asking = Promise.withResolvers<RecordedOf<'decision-asked'>>()
  const running = project.run('Two.', {
    template: 'toy',
    canAsk: true,
    onEvent: event => event.type === 'decision-asked' && asking.resolve(event),
  })
  const { at, until, session } = await asking.promise
  // The clock of the machine may move on between the two.
  expect((Date.parse(until) - Date.parse(at)) / 60_000).toBeCloseTo(30, 2)

  const says = async (words: readonly string[], isTTY: boolean) => {
    const stdin = Object.assign(new PassThrough(), { isTTY })
    const stdout = Object.assign(new PassThrough(), { isTTY })
    const env = { ...place.env, VISUAL: editor, EDITOR: editor }
    const context = cliContext(place, { env, templates, stdin, stdout })
    const error = await decide(context, words, {}).then(
      () => null,
      (thrown: Error) => thrown.message,
    )
    return error ?? String(stdout.read())
  }
  expect(await says([earlier, 'edit'], false)).toBe(`${session} runs now, not ${earlier}.`)
  expect(await says(['edit', 'gladly'], false)).toBe('"edit" takes no text; leave it out.')
  expect(await readFile(path, 'utf8')).toBe('a plan\n')
  expect(await says([session, 'edit'], true)).toBe(`${session} continues with: I edit it\n`)
  expect(await readFile(path, 'utf8')).toBe('a plan\nand more\n')
  expect((await running).outcome).toMatchObject({ kind: 'needs-person' })
})
