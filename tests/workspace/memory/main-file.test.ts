import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseMainFile, withDone, withoutClaim } from '../../../src/workspace/memory/main-file.ts'
import { cpuMs } from '../../support/cpu-time.ts'

const front = (yaml: string, body = '') => `---\n${yaml}\n---\n${body}`
const good = 'status: in-progress\nfinite_incantatem: false\nshort_title: "A title"'

function open(body: string): readonly string[] {
  const main = parseMainFile(front(good, body))
  if (!main.ok) throw new Error(main.problem)
  return main.value.open
}

function problem(text: string): string {
  const main = parseMainFile(text)
  return main.ok ? 'no problem' : main.problem
}

describe('why nothing is needed', () => {
  const why = (body: string) => {
    const main = parseMainFile(front(good, body))
    return main.ok ? main.value.whyNothing : main.problem
  }

  it('is what stands under its heading, on one line and cut', () => {
    expect(why('## Done\n\n## Why nothing is needed\n\nThe flag *exists*:\n`--dry-run` works.\n\n## Notes\nmore')).toBe(
      'The flag *exists*: `--dry-run` works.',
    )
    expect(why(`### why nothing is needed:\n${'x'.repeat(5000)}`)).toHaveLength(1000)
  })

  it.each([
    'Why nothing is needed: it is there.',
    '## Why nothing is needed\n\n<!-- nothing -->\n',
    '## Why nothing is needed\n-\n## Done\nAll.',
    '```\n## Why nothing is needed\nIt is there.\n```',
    '## Why nothing is needed\nNothing.',
  ])('is not said by: %j', body => {
    expect(why(body)).toBeUndefined()
  })
})

describe('the front matter', () => {
  it('says status, flag and title', () => {
    expect(parseMainFile(front(good))).toEqual({
      ok: true,
      value: { status: 'in-progress', finiteIncantatem: false, shortTitle: 'A title', open: [] },
    })
  })

  it('is read alike with a byte order mark and Windows line ends', () => {
    expect(parseMainFile(`\uFEFF${front(good, '## Todo\n- [ ] a').replaceAll('\n', '\r\n')}`)).toMatchObject({
      ok: true,
      value: { status: 'in-progress', open: ['a'] },
    })
  })

  it.each([
    ['---js', 'line 1 is "---js"; begin with --- alone, as the front matter is read as YAML only.'],
    ['---json', 'line 1 is "---json"; begin with --- alone, as the front matter is read as YAML only.'],
    ['---constructor', 'line 1 is "---constructor"; begin with --- alone, as the front matter is read as YAML only.'],
  ])('is never evaluated: %s', (opening, sentence) => {
    const text = `${opening}\n{ status: (globalThis.evaluated = true), finite_incantatem: true }\n---\n`
    expect(problem(text)).toBe(sentence)
    expect(problem(text)).toBe(sentence)
    expect('evaluated' in globalThis).toBe(false)
  })

  it.each([
    ['', 'it is empty; begin with a front matter between two lines of ---.'],
    ['# Goal\n', 'it has no front matter; begin with a line ---, the keys, and a line ---.'],
    ['---\nstatus: done\n', 'its front matter is not closed; put a line --- after the keys.'],
    ['---\nstatus: done\n--- #\n', 'line 3 has more than ---; close the front matter with --- alone.'],
    ['---\n---\n', 'status is missing; use a word such as in-progress or done.'],
    [front('status: in-progress'), 'finite_incantatem is missing; use true or false, without quotes.'],
    [front('status: 3\nfinite_incantatem: true'), 'status is 3; use a word such as in-progress or done.'],
    [front('status: a\nfinite_incantatem: "true"'), 'finite_incantatem is "true"; use true or false, without quotes.'],
    [front('status: a\nfinite_incantatem: yes'), 'finite_incantatem is "yes"; use true or false, without quotes.'],
    [front('- a'), 'its front matter is not a list of keys; write lines such as status: in-progress.'],
    [
      front('status: a\nstatus: b'),
      'line 3, column 1: duplicated mapping key; write the front matter as lines of key: value.',
    ],
    [front('a: &x [1]\nb: *x'), 'its front matter uses YAML aliases; write every value out.'],
    [
      front(`title: ${'x'.repeat(17_000)}`),
      'its front matter is longer than 16 KiB; keep it to a few keys and close it with ---.',
    ],
    [
      front('__proto__: { status: done, finite_incantatem: true }'),
      'status is missing; use a word such as in-progress or done.',
    ],
  ])('that is wrong is told with its place and its mend (%#)', (text, sentence) => {
    expect(problem(text)).toBe(sentence)
    expect(problem(text)).toBe(sentence)
  })

  it('cannot grow by aliases of aliases', () => {
    const levels = Array.from({ length: 200 }, (_, n) => `a${n + 1}: &a${n + 1} [*a${n}, *a${n}]`)
    const bomb = front(['a0: &a0 [x]', ...levels, 'status: done', 'finite_incantatem: true'].join('\n'))
    const started = cpuMs()
    expect(problem(bomb)).toContain('YAML aliases')
    expect(cpuMs() - started).toBeLessThan(1_000)
  })
})

describe('the open entries', () => {
  it('are the unchecked boxes and plain bullets under In progress and Todo', () => {
    const body = `# Goal
- [ ] not this
## IN PROGRESS
- [ ] one
* [ ] two
  - [ ] nested
  - a note to two
- [x] closed
## Todo:
+ [ ] four
1. [ ] five
- six
### Backend
- [ ] seven
## Done
- [ ] eight
- nine`
    expect(open(body)).toEqual(['one', 'two', 'nested', 'four', 'five', 'six', 'seven'])
  })

  it('are none where a section says so', () => {
    expect(open('## In progress\n- none\n- (none)\n* Nothing.\n## Todo\n- -\n- [ ]\n-\n- [ ] None')).toEqual([])
  })

  it('are not those in code fences, whatever the fence', () => {
    expect(
      open('## Todo\n```\n- [ ] a\n~~~\n```\n~~~~md\n- [ ] b\n~~~\n- [ ] c\n~~~~~\n- [ ] d\n```x` \n- [ ] e'),
    ).toEqual(['d', 'e'])
  })

  it('are not those in comments, and a comment sign in a text hides nothing', () => {
    expect(
      open(
        '## Todo\n<!-- - [ ] a -->\n<!--\n- [ ] b\n-->\n- [ ] c <!-- d -->\n- [ ] strip `<!--`\n- [ ] e\n- <!-- f\n- [ ] g -->',
      ),
    ).toEqual(['c', 'strip `<!--`', 'e'])
  })

  it('are found in time, however the text is made', () => {
    const started = cpuMs()
    for (const part of ['<!--', '`', '#', '- ', '\t', '[ ] ', '```\n'])
      open(`## Todo\n${part.repeat(500_000 / part.length)}`)
    expect(cpuMs() - started).toBeLessThan(3_000)
  })
})

describe('saying that it is done', () => {
  it.each([
    ['status: in-progress', 'status: done'],
    ['status:   in progress  # by hand', 'status:   done  # by hand'],
    ['"status": "in-progress"\r', '"status": done\r'],
    ["status: 'blocked'", 'status: done'],
    ['status: done', 'status: done'],
  ])('changes %s alone', (line, after) => {
    const text = `---\n${line}\nfinite_incantatem: true\nshort_title: "status: x"\n---\n\nstatus: in-progress\n`
    expect(withDone(text)).toEqual({ ok: true, value: text.replace(line, after) })
  })

  it.each(['status: |\n  in-progress', '{status: in-progress, finite_incantatem: true}'])(
    'leaves %s as it is, and says why',
    front => {
      const text = `---\n${front}\n---\n`
      expect(withDone(text)).toMatchObject({ ok: false, problem: expect.stringContaining('not plain') })
    },
  )
})

describe('withdrawing a claim', () => {
  it('changes the flag and the status and nothing else, byte for byte', () => {
    const text = `\uFEFF---\r\n# a comment\r\nstatus:   "Done"  # really\r\nother: {a:  1}\r\n'finite_incantatem': True # yes\r\nshort_title: 'x'\r\n---\r\nfinite_incantatem: true\r\nstatus: done\r\n`
    expect(withoutClaim(text)).toEqual({
      ok: true,
      value: text.replace('"Done"', '"in-progress"').replace(': True #', ': false #'),
    })
  })

  it('leaves a status that claims nothing', () => {
    const text = front('status: reviewing\nfinite_incantatem: true')
    expect(withoutClaim(text)).toEqual({ ok: true, value: text.replace('true', 'false') })
  })

  it.each([
    '{ status: a, finite_incantatem: true }',
    'status: a\nfinite_incantatem: !!bool true',
    'status: a\n? finite_incantatem\n: true',
    'status: >-\n  done\nfinite_incantatem: false',
  ])('is possible for every claim that counts as one: %j is a problem instead', yaml => {
    expect(problem(front(yaml))).toBe(
      'its done claim is not plain; write finite_incantatem: true on a line of its own.',
    )
  })

  it.each(['status: done', 'finite_incantatem: true'])('sees no claim inside of quotes: %s', line => {
    expect(problem(front(`title: "\n${line}\n"\nstatus: a\nfinite_incantatem: true`))).toBe(
      'line 3, column 1: deficient indentation; write the front matter as lines of key: value.',
    )
  })
})

it('any text at all is a MAIN.md or a problem with a sentence', () => {
  const piece = fc.constantFrom(
    '---',
    '\n',
    'status: done',
    'finite_incantatem: true',
    ': ',
    '"',
    "'",
    '{',
    '[',
    '&a ',
    '*a',
    '- [ ] a',
    '## Todo',
    '```',
    '<!--',
    '\r',
    '\t',
    '!!',
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.string({ unit: 'binary' })), { maxLength: 30 }), pieces => {
      const text = pieces.join('')
      for (const candidate of [text, front(text), front(good, text), front(`${good}\n${text}`)]) {
        const main = parseMainFile(candidate)
        if (!main.ok) expect(main.problem).toMatch(/; .*\.$/s)
        else if (main.value.finiteIncantatem) expect(withoutClaim(candidate).ok).toBe(true)
      }
    }),
  )
})
