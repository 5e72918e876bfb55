import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newMainFile, typedGoal, withGoal } from '../../../src/workspace/memory/main-file.ts'
import { promise } from '../../support/promise.ts'

const FRONT = '---\nstatus: in-progress\nfinite_incantatem: true\nshort_title: x\n---\n'
const TEMPLATE = `${FRONT.replace('x', '{{short_title}} # {{git_commit}} {{git_branch}}')}\n# Goal\n\n{{goal}}\n\n## In progress\n\n- [ ] T1 mine\n\n## Todo\n\n## Done\n`
const GOAL = 'Write one.txt and two.txt.\n\n  - two.txt says "naïve"\n## Todo\n- not an entry'

const fileOf = (goal: string) => newMainFile(TEMPLATE, { goal, git: { commit: null, branch: null } }, text => text)
const main = (body: string) => `${FRONT}${body}`
const REST = '\n\n## In progress\n\n- [ ] T1 mine\n'

describe('the goal in MAIN.md', () => {
  test.each<[string, string]>([
    ['as it was put there', fileOf(GOAL)],
    ['with line ends of Windows', fileOf(GOAL).replaceAll('\n', '\r\n')],
    ['with white space at the ends of lines', fileOf(GOAL).replaceAll('.\n', '. \t\n')],
    ['with other blank lines', fileOf(GOAL).replace('two.txt.\n\n', 'two.txt.\n').replace('# Goal\n\n', '# Goal\n')],
    ['with its characters in another Unicode form', fileOf(GOAL).normalize('NFD')],
    ['below a heading of another level', fileOf(GOAL).replace('# Goal', '### Goal ###')],
    ['below a heading with a colon', fileOf(GOAL).replace('# Goal', '## Goal:')],
    ['in another fence', fileOf(GOAL).replace('```text', '~~~~').replace('```\n\n## In', '~~~~\n\n## In')],
    ['without a fence', main(`# Goal\n\n${GOAL}${REST}`)],
    ['before a rule', main(`# Goal\n${GOAL}\n\n---\n${REST}`)],
    ['at the end of the file', main(`## Notes\n\nMine.\n\n# Goal\n${GOAL}`)],
    ['beside a note of its own name, deep below', `${fileOf(GOAL)}\n# Parts\n\n### Goal\n\nOf the first part.\n`],
  ])('stays %s', (_, text) => {
    expect(withGoal(text, GOAL)).toBe(null)
  })

  promise('D64')
  test.each<[string, string, string | null]>([
    ['is shortened', main(`# Goal\n\nWrite one.txt.${REST}`), 'Write one.txt.'],
    ['is shortened in its fence', fileOf('Write one.txt and two.txt.'), '```text\nWrite one.txt and two.txt.\n```'],
    ['is another', main(`# Goal\n\nHave a rest.${REST}`), 'Have a rest.'],
    ['is translated', main(`# Goal\n\nSchreib one.txt und two.txt.${REST}`), 'Schreib one.txt und two.txt.'],
    [
      'has something behind it',
      fileOf(GOAL).replace('```\n\n## In', '```\n\nThe second is optional.\n\n## In'),
      'optional',
    ],
    ['has something behind it without a fence', main(`# Goal\n\n${GOAL}\nOnly the first.${REST}`), 'Only the first.'],
    [
      'has something before it',
      fileOf(GOAL).replace('# Goal\n', '# Goal\n\nOf this only the half:\n'),
      'only the half',
    ],
    ['has something in the middle', fileOf(GOAL).replace('two.txt.\n', 'two.txt.\nOr not.\n'), 'Or not.'],
    ['has something behind its fence', fileOf(GOAL).replace('```text', '```text but only one.txt'), 'but only one.txt'],
    [
      'has a comment behind it',
      fileOf(GOAL).replace('```\n\n## In', '```\n<!-- the half will do -->\n\n## In'),
      'half',
    ],
    ['has its lines in another order', fileOf('b\na'), 'b\na'],
    ['has nothing in it', main(`# Goal\n${REST}`), null],
    ['has an indented line less', fileOf(GOAL.replace('  - two', '- two')), '\n- two'],
    ['is there, and another one with it', `${fileOf(GOAL)}\n# Goal\n\nOnly one.txt.\n`, 'Only one.txt.'],
    ['is there, below another one', main(`# Goal\n\nOnly one.txt.\n\n# Goal\n\n${GOAL}${REST}`), 'Only one.txt.'],
    [
      'is in a fence that is not closed',
      main('# Goal\n\n```text\nWrite one.txt.\n\n## In progress\n\n- [ ] T1 mine\n'),
      'one.txt',
    ],
  ])('that %s is put back, and all else stays', (_, text, found) => {
    const goal = text.includes('b\na') ? 'a\nb' : GOAL
    const back = withGoal(text, goal)
    expect(back).toMatchObject({ how: 'changed' })
    if (found === null) expect(back?.found).toBe(null)
    else expect(back?.found).toContain(found)
    expect(back?.text).toContain('- [ ] T1 mine')
    expect(back?.text.startsWith(FRONT.slice(0, 50))).toBe(true)
    expect(withGoal(back?.text ?? '', goal)).toBe(null)
    if (found !== null && found !== 'b\na' && !goal.includes(found.trim())) expect(back?.text).not.toContain(found)
  })

  test.each<[string, string]>([
    ['whose heading is gone', main('## In progress\n\n- [ ] T1 mine\n')],
    ['that was moved below another heading', fileOf(GOAL).replace('# Goal', '# Background')],
    ['that is hidden in a comment', main(`<!--\n# Goal\n${GOAL}\n-->${REST}`)],
    ['that is hidden in a fence', main(`\`\`\`\`\n# Goal\n${GOAL}\n\`\`\`\`${REST}`)],
    ['of an empty file', main('')],
  ])('%s is put before the first heading, and all else stays', (_, text) => {
    const back = withGoal(text, GOAL)
    expect(back).toMatchObject({ how: 'removed', found: null })
    const block = `\n\n# Goal\n\n\`\`\`text\n${GOAL}\n\`\`\`\n\n`
    expect(
      back?.text
        .split(block)
        .map(part => part.trim())
        .filter(part => part !== '')
        .join('\n\n'),
    ).toBe(text.trim().replace('---\n## In', '---\n\n## In').replace('---\n\n# B', '---\n\n# B'))
    expect(withGoal(back?.text ?? '', GOAL)).toBe(null)
  })

  test('is put back with the line ends of the file', () => {
    const back = withGoal(main(`# Goal\n\nRest.${REST}`).replaceAll('\n', '\r\n'), 'Work.\nMuch.')
    expect(back?.text).toContain('# Goal\r\n\r\n```text\r\nWork.\r\nMuch.\r\n```\r\n\r\n## In progress\r\n')
  })

  test('is found in time in a file made to take long', () => {
    const bodies = ['~~~x\n'.repeat(60_000), '<!-- \n'.repeat(60_000), '# Goal\n'.repeat(60_000), ' \n'.repeat(200_000)]
    const from = performance.now()
    for (const body of bodies) expect(withGoal(main(body), GOAL)?.text).toContain(GOAL)
    expect(performance.now() - from).toBeLessThan(20_000)
  })
})

describe('the goal as a person typed it', () => {
  test('is that of the copy, with the secrets that the journal does not have', () => {
    expect(typedGoal(fileOf('Use hunter2, and\nhunter3.'), 'Use [secret A], and\n[secret B].')).toBe(
      'Use hunter2, and\nhunter3.',
    )
    expect(typedGoal(fileOf('-----BEGIN\nKEY\nis it'), '[secret KEY]\nis it')).toBe('-----BEGIN\nKEY\nis it')
  })

  test('is that of the journal where the copy has another', () => {
    expect(typedGoal(fileOf('Use hunter2.'), 'Use [secret A], and more.')).toBe('Use [secret A], and more.')
    expect(typedGoal(fileOf('Half.'), 'All.')).toBe('All.')
    expect(typedGoal(main('no goal'), 'All.')).toBe('All.')
    expect(typedGoal('', 'All.\0')).toBe('All.\uFFFD')
  })
})

/** A line of a goal, among them what the file uses itself. */
const line = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: 'grapheme', maxLength: 30 }) },
  fc.constantFrom(
    '# Goal',
    '## In progress',
    '```',
    '~~~~',
    '````text',
    '<!--',
    '-->',
    '---',
    '',
    '  indented',
    '- [ ] T1',
    'naïve',
  ),
)
const goal = fc
  .array(line, { minLength: 1, maxLength: 12 })
  .map(lines => lines.join('\n'))
  .filter(text => text.trim() !== '')

const forgiven: readonly ((text: string) => string)[] = [
  text => text,
  text => text.replaceAll('\n', '\r\n'),
  text => text.replaceAll('\n', ' \n'),
  text => text.replaceAll('\n', '\n\n'),
  text => text.normalize('NFD'),
  text => text.normalize('NFC'),
]

promise('D65')
test('whatever a goal is, it is found as it was put there, also in other white space and in another form', () => {
  fc.assert(
    fc.property(goal, fc.constantFrom(...forgiven), (text, change) => {
      const file = fileOf(text)
      const body = file.indexOf('\n---\n') + '\n---\n'.length
      expect(withGoal(`${file.slice(0, body)}${change(file.slice(body))}`, text)).toBe(null)
    }),
  )
})

test('whatever stands in the place of a goal, the goal is there after it was put back, once, with the entries of the agent', () => {
  fc.assert(
    fc.property(goal, goal, fc.boolean(), (text, other, isFenced) => {
      const changed = isFenced ? fileOf(other) : fileOf('x').replace('```text\nx\n```', other)
      const back = withGoal(changed, text)
      if (back === null) return
      expect(withGoal(back.text, text)).toBe(null)
      if (isFenced) expect(back.text).toContain('- [ ] T1 mine')
    }),
  )
})

test('a goal that is another is never taken for the same', () => {
  const shown = (text: string) =>
    text
      .normalize('NFC')
      .split(/\r\n|\r|\n/)
      .map(each => each.trimEnd())
      .filter(each => each !== '')
      .join('\n')
  fc.assert(
    fc.property(goal, goal, (text, other) => {
      fc.pre(shown(text) !== shown(other))
      expect(withGoal(fileOf(other), text)).not.toBe(null)
    }),
  )
})
