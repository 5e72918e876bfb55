import { about, fields, flag, listOf, nullOr, number, oneOf, optional, text, unchecked, variant } from './schema.ts'
import { ofScope } from './shapes.ts'

const treeChanges = fields({
  files: about(number, 'how many files differ'),
  added: about(number, 'lines, in files that are text'),
  removed: about(number, 'lines, in files that are text'),
  paths: about(
    listOf(fields({ path: text, added: nullOr(number), removed: nullOr(number) })),
    "in git's order, at most as many as were asked for; `null` lines: not text",
  ),
})

/** Events of memory files, the repository and the work tree. */
export const fileEvent = variant('type', {
  'memory-broken': {
    problem: fields({
      file: about(text, '`MAIN.md` or `tasks.json`'),
      problem: about(text, 'the place and how to fix it, in one sentence'),
      setAside: about(
        nullOr(text),
        "where the broken file was put, relative to the session's folder; `null` if there was nothing to keep",
      ),
      restored: about(flag, 'whether the last good copy was put back'),
    }),
  },
  'goal-restored': {
    round: about(number, 'the one that ended last; `0`: none has'),
    file: about(
      text,
      "`MAIN.md` (its section `# Goal`), or the path of a person's file, such as `.codemachine/inputs/specifications.md`",
    ),
    how: about(oneOf('changed', 'removed'), "how the person's words had changed"),
    found: about(nullOr(text), 'the words found instead, at most 2,000 characters; `null`: none that can be shown'),
    setAside: about(nullOr(text), 'where the whole of that is kept, relative to the work directory; `null`: nowhere'),
    restored: about(flag, 'whether they were put back'),
  },
  'repository-restored': {
    round: unchecked(number),
    paths: about(listOf(text), "files of the repository's own settings"),
    setAside: about(nullOr(text), 'where the changed files are kept; `null` if there was nothing to keep'),
  },
  savepoint: {
    round: about(
      number,
      'the round after which it was made; `0`: the start of the session. A retried round, and the end of the session after steps and gates, write a savepoint with the same number; the later one counts',
    ),
    commit: about(text, 'git hashes in the private git directory'),
    tree: about(text, 'git hashes in the private git directory'),
    changes: about(
      treeChanges,
      'since the session began: `{ files, added, removed, paths }`: the number of changed files, lines of text files, and at most 50 files as `{ path, added, removed }` (`null`: not text)',
    ),
    head: about(nullOr(text), "commit of the person's own branch; `null` if there is none"),
    commits: about(
      listOf(fields({ commit: text, subject: text })),
      'that are new on it since the savepoint before, the oldest first, at most 20: `[{ commit, subject }]`',
    ),
    uncommitted: about(
      optional(fields({ paths: listOf(text), count: number })),
      'after rounds have committed: changes since the session began that differ from `head`: `{ paths, count }`, at most 50 paths; left out: none, unknown, or by an older version',
    ),
    notLookedAt: about(
      optional(fields({ paths: listOf(text), count: number })),
      'files in the work directory that the savepoint omits: `{ paths, count }`, at most 50 paths, a folder ends in `/`; left out: none, or by an older version',
    ),
  },
  'settings-changed': { round: about(number, 'the first one that changed it') },
  'protected-changed': {
    round: number,
    files: about(
      listOf(
        fields({
          path: about(text, 'relative to the work directory'),
          how: oneOf('changed', 'deleted', 'skipped'),
          gates: about(listOf(text), 'names of the gates that protect it'),
        }),
      ),
      'at most 50: `[{ path, how, gates }]`. `how`: `changed`, `deleted` or `skipped` (marks its tests as skipped); `gates`: names of the gates that protect it',
    ),
    count: about(number, 'how many in all'),
    scope: optional(ofScope),
  },
  'gate-configuration': {
    round: about(number, 'the one that ended last; `0`: before round 1'),
    files: about(
      listOf(
        fields({ path: about(text, 'relative to the work directory'), how: oneOf('added', 'changed', 'deleted') }),
      ),
      'at most 50 files that differ from the start of the session or scope: `[{ path, how }]`. `how`: `added`, `changed` or `deleted`',
    ),
    count: about(number, 'how many in all; `0`: none differs (any more)'),
    digest: about(nullOr(text), 'hash that identifies this content; `null`: no file differs'),
    programs: about(
      optional(text),
      'before round 1: version and hash of the programs outside the files, and of their packages, by path; in older versions a hash of `node_modules/.bin`',
    ),
    scope: optional(ofScope),
  },
})
