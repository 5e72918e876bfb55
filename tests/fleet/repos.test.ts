import { describe, expect, test } from 'vitest'
import { problemOfRef, problemOfRepo, takesRepo } from '../../src/fleet/repos.ts'

describe('the address of a repository', () => {
  test.each([
    'https://git.example/team/app.git',
    'https://night@git.example/app',
    'ssh://git@git.example:2222/app.git',
    'git@git.example:team/app.git',
    'git@git.example:/srv/app.git',
    'http://127.0.0.1:3000/app',
    'http://localhost/app',
    'http://[::1]/app',
    '/srv/git/app.git',
    'file:///srv/git/app.git',
  ])('may be %s', repo => {
    expect(problemOfRepo(repo)).toBeNull()
  })

  test.each([
    '',
    '-x',
    '--upload-pack=touch /tmp/x',
    '--upload-pack=/tmp/x',
    '-x@host:path',
    'ext::sh -c touch% /tmp/x',
    'ext::sh',
    'fd::17',
    'https://git.example/a\nb',
    'https://git.example/a b',
    'git@git.example:a\u0007',
    'https://night:secret@git.example/app',
    'ssh://night:secret@git.example/app',
    'http://git.example/app',
    'http://127.0.0.1.git.example/app',
    'http://localhost.git.example/app',
    'git://git.example/app',
    'ftp://git.example/app',
    'javascript:alert(1)',
    'file://other/srv/app',
    'ssh://-oProxyCommand=x/app',
    '-oProxyCommand=x@git.example:app',
    'git@-oProxyCommand=x:app',
    'git@git.example:-x',
    'git@git.example::x',
    'ssh://git.example/-x\0',
    'relative/app',
    './app',
    `https://git.example/${'a'.repeat(2_000)}`,
  ])('is never %j', repo => {
    expect(problemOfRepo(repo)).toMatch(/\S/)
  })

  test('that holds a password is not said again in what is wrong with it', () => {
    expect(problemOfRepo('https://night:secret@git.example/app')).toBe(
      'holds a password: each worker has its own credentials',
    )
  })
})

describe('the name of a branch, tag or commit', () => {
  test.each(['main', 'feature/x-1', 'v1.2.3', 'a'.repeat(40), 'dependabot/npm/@types', '_x', 'a+b'])(
    'may be %s',
    ref => {
      expect(problemOfRef(ref)).toBeNull()
    },
  )

  test.each([
    '',
    '-x',
    '--output=/tmp/x',
    'a..b',
    'a b',
    'a\n',
    'a~1',
    'a^{tree}',
    'a:b',
    '@{-1}',
    'a@{1}',
    'a//b',
    'a/',
    'a.',
    'a.lock',
    '/a',
    'a*',
    'a\\b',
    'a'.repeat(201),
  ])('is never %j', ref => {
    expect(problemOfRef(ref)).toMatch(/\S/)
  })
})

describe('a worker takes a repository', () => {
  test.each<[readonly string[], string, boolean]>([
    [[], 'https://git.example/a', true],
    [[], '/srv/git/a', false],
    [[], 'file:///srv/git/a', false],
    [['https://git.example/**'], 'https://git.example/team/a', true],
    [['https://git.example/*'], 'https://git.example/team/a.git', true],
    [['https://git.example/**'], 'https://other.example/team/a', false],
    [['https://git.example/**'], 'https://git.example.evil.example/a', false],
    [['git@git.example:team/*'], 'git@git.example:team/a', true],
    [['git@git.example:team/*'], 'git@git.example:other/a', false],
    [['**'], 'https://git.example/.hidden/a', true],
    [['**'], '/etc', false],
    [['*'], 'file:///etc', false],
    [['/srv/git/**'], '/srv/git/a', true],
    [['/srv/git/**'], '/srv/other/a', false],
    [['/srv/git/**'], '/srv/git/../../etc', false],
    [['/srv/git/**'], 'https://git.example/srv/git/a', false],
    [['https://a.example/**', '/srv/**'], '/srv/a', true],
  ])('of the patterns %j: %s (%s)', (patterns, repo, takes) => {
    expect(takesRepo(patterns)(repo)).toBe(takes)
  })
})
