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

/** Events of the files: of the memory, the repository, the work tree. */
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
      '`MAIN.md`, of which it is the section `# Goal`; or the path of a file of the person, such as `.codemachine/inputs/specifications.md`',
    ),
    how: about(oneOf('changed', 'removed'), 'what had become of the words of the person'),
    found: about(
      nullOr(text),
      'what stood in their place, at most 2,000 characters; `null`: nothing that can be shown',
    ),
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
      'the round after which it was made; `0`: what the session began with. A round that is tried again under its number is kept again, and the later savepoint counts; so is, at the end of the session, what steps and gates have left since',
    ),
    commit: about(text, 'git hashes in the private git directory'),
    tree: about(text, 'git hashes in the private git directory'),
    changes: about(
      treeChanges,
      'since the session began: `{ files, added, removed, paths }`; how many files differ, lines of those that are text, and at most 50 files as `{ path, added, removed }` (`null`: not text)',
    ),
    head: about(nullOr(text), "commit of the person's own branch; `null` if there is none"),
    commits: about(
      listOf(fields({ commit: text, subject: text })),
      'that are new on it since the savepoint before, the oldest first, at most 20: `[{ commit, subject }]`',
    ),
    uncommitted: about(
      optional(fields({ paths: listOf(text), count: number })),
      'once rounds have committed: what has changed since the session began and is otherwise in `head`: `{ paths, count }`, at most 50 paths; left out: nothing, not known, or by an older version',
    ),
    notLookedAt: about(
      optional(fields({ paths: listOf(text), count: number })),
      'what lay in the work directory after the round and is not kept: `{ paths, count }`, at most 50 paths, a folder ends in `/`; left out: nothing, or by an older version',
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
          gates: about(listOf(text), 'names of those that protect it'),
        }),
      ),
      'at most 50: `[{ path, how, gates }]`. `how`: `changed`, `deleted` or `skipped` (tests in it are marked to be skipped); `gates`: names of those that protect it',
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
      'at most 50, of all that differ by now from what the session, or the scope, began with: `[{ path, how }]`. `how`: `added`, `changed` or `deleted`',
    ),
    count: about(number, 'how many in all; `0`: none differs (any more)'),
    digest: about(nullOr(text), 'by which this very content is known again; `null`: none differs'),
    programs: about(
      optional(text),
      'before round 1: what the programs beside the files and their packages are made of, by path: a version and a hash; by an earlier version a hash of `node_modules/.bin`',
    ),
    scope: optional(ofScope),
  },
})
