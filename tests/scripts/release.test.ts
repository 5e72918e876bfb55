import { describe, expect, test } from 'vitest'
import { releasedChangelog, strangersIn, withAbsoluteLinks } from '../../scripts/release-parts.ts'

const ON = new Date('2026-11-30T12:00:00Z')

describe('the changelog of a release', () => {
  test('has the version and its day in place of the unreleased section', () => {
    const text =
      '# Changelog\n\n## Unreleased\n\n### Added\n\n- a\n\n### Security\n\n- b\n\n## 0.1.0 (2026-10-01)\n\n### Fixed\n'
    expect(releasedChangelog(text, '0.2.0', ON)).toEqual({
      text: text.replace('## Unreleased', '## 0.2.0 (2026-11-30)'),
      headings: ['Added', 'Security'],
    })
  })

  test.each([
    ['## 0.1.0 (2026-10-01)\n\n### Added\n', 'CHANGELOG.md does not begin with an unreleased section'],
    [
      '## 0.2.0 (unreleased)\n\n### Plans\n\n## 0.1.0\n\n### Added\n',
      'CHANGELOG.md: the unreleased section has none of Added, Changed, Deprecated, Removed, Fixed, Security',
    ],
  ])('is refused if it says nothing of it: %j', (text, problem) => {
    expect(releasedChangelog(text, '0.2.0', ON)).toEqual({ problem })
  })
})

test('a file that belongs to no part of the package is named', () => {
  const good = ['package.json', 'dist/bin.js', 'dist/index.d.ts', 'docs/guides/ci.md', 'prompts/goal.md']
  expect(strangersIn([...good, '.env', 'dist/bin.js.map', 'tests/a.test.ts', 'docs/notes.txt'])).toEqual([
    '.env',
    'dist/bin.js.map',
    'tests/a.test.ts',
    'docs/notes.txt',
  ])
})

describe('a link of a shipped page', () => {
  const page =
    '[a](../start/install.md#login), [b](https://x.test), [c](../inside/codex.md), <img src="../pictures/a.svg">, [d](../guides)'
  const of = { path: 'docs/guides/ci.md', shipped: ['docs/guides/ci.md', 'docs/start/install.md'], version: '0.2.0' }

  test('to a file that is not shipped leads to the repository', () => {
    const manifest = { repository: { url: 'git+https://host.test/us/codemachine.git' } }
    expect(withAbsoluteLinks(page, { ...of, manifest })).toEqual({
      text: page
        .replace('../inside/codex.md', 'https://host.test/us/codemachine/blob/v0.2.0/docs/inside/codex.md')
        .replace('../pictures/a.svg', 'https://host.test/us/codemachine/raw/v0.2.0/docs/pictures/a.svg'),
      lost: [],
    })
  })

  test('is named if there is no repository', () => {
    expect(withAbsoluteLinks(page, { ...of, manifest: {} })).toEqual({
      text: page,
      lost: ['../inside/codex.md', '../pictures/a.svg'],
    })
  })
})
