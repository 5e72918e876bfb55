import { HOOK_MOMENTS } from '../shapes/hook.ts'
import {
  about,
  anyValue,
  checkedAs,
  fields,
  flag,
  listOf,
  literal,
  nullOr,
  number,
  oneOf,
  optional,
  text,
  variant,
} from './schema.ts'
import { gate, output } from './shapes.ts'

/** A step that codemachine runs itself, without a round. */
const stepKind = oneOf(
  'look',
  'command',
  'write',
  'note',
  'claim',
  'leave-scope',
  'enter',
  'keep',
  'gates',
  'confirm-secret',
)

const step = about(number, 'as in `step-started`')

/**
 * Events of template steps other than rounds, and of scopes. Each step has `step-started` first, then one of the others; a
 * claim continues as `done-nominated`.
 */
export const stepEvent = variant('type', {
  'step-started': {
    step: about(
      number,
      'its number in the session, from 1. A step that was cut off, or broken off by a person, starts again under the same number',
    ),
    kind: about(
      checkedAs(text, stepKind),
      '`look`: a function of the template looks at something; `command`: a shell line runs; `write`: writes files; `note`: notes a sentence; `claim`: claims that the goal is reached; `leave-scope`: leaves a scope that is not done; `enter`: enters another state of the template; `keep`: keeps a text for people; `gates`: makes commands gates of the session; `confirm-secret`: looks whether a secret exists and works',
    ),
    name: about(
      text,
      'its subject: the name of the command, the first file, the scope, the state, the first gate, the secret',
    ),
    timeoutMs: about(optional(number), 'of a command: how long it may take, ms; left out by older versions'),
  },
  looked: {
    step,
    what: about(text, 'what it read: a word of the template'),
    result: about(
      optional(anyValue),
      "what was found, a value of the template's own; left out if it has more than 65,536 bytes as JSON",
    ),
    output: about(
      optional(output),
      'where the whole text is stored if it is too long for the event, as in `answer-given`',
    ),
    file: about(
      optional(text),
      "the file of the session's folder in the work directory in which that text is kept, too; left out: in none",
    ),
    problem: about(optional(text), 'why it is not in that file, a sentence; left out: it is, or it was to be in none'),
  },
  'command-ran': {
    step,
    name: about(text, 'its name: a word or two of the template'),
    status: about(
      oneOf('passed', 'failed', 'timed-out', 'not-started', 'broken-off'),
      '`passed`: its exit code is 0; `failed`; `timed-out`; `not-started`: there is nothing that could be run; `broken-off`: a person or the end of the session cut it short, and it is run again',
    ),
    exitCode: about(nullOr(number), '`null` if it did not end by itself'),
    durationMs: number,
    output: about(text, 'its last lines of output, stdout and stderr, at most 4,000 characters'),
    kept: about(
      optional(output),
      'where up to 16,000 characters of its output are stored, as in `answer-given`; left out if it printed nothing',
    ),
    problem: about(nullOr(text), 'why it could not run, a sentence; `null`: it ran'),
    tree: about(text, 'fingerprint of the work tree that it ran on'),
    treeAfter: about(text, 'fingerprint of the work tree that it left'),
    changed: about(listOf(text), 'its changes in that tree, at most 50 paths'),
    changedCount: about(number, 'how many'),
  },
  wrote: {
    step,
    files: about(
      listOf(
        fields({
          path: about(text, 'relative to the work directory, with `/`'),
          bytes: about(number, 'its size'),
          sha256: about(text, 'hash of its bytes, hex'),
        }),
      ),
      'all files of the step: `[{ path, bytes, sha256 }]`, relative to the work directory, also unchanged ones; none if there is a `problem`',
    ),
    problem: about(nullOr(text), 'why nothing was written, a sentence; `null` if it was'),
  },
  noted: {
    step,
    name: about(text, 'its subject: a word or two of the template'),
    text: about(text, "the template's text, at most 1,000 characters"),
  },
  'state-entered': {
    step,
    state: about(text, 'a word of the template'),
    from: about(nullOr(text), 'the state before it; `null`: it was in none'),
    why: about(text, 'why, a sentence'),
  },
  kept: {
    step,
    file: about(text, "the file, relative to the session's folder in the work directory, with `/`"),
    bytes: about(nullOr(number), 'its size; `null` if there is a `problem`'),
    sha256: about(nullOr(text), 'hash of its bytes, hex; `null` if there is a `problem`'),
    output: about(
      optional(output),
      'where the text is kept in the records, as in `answer-given`; left out: it is in that file alone',
    ),
    problem: about(nullOr(text), 'why the file was not written, a sentence; `null` if it was'),
  },
  'gates-added': {
    step,
    gates: about(
      listOf(gate),
      'all gates that the template has added so far, as in `session-created`. They replace those of an earlier such event. A gate with the same `run` as another gate of the session adds nothing',
    ),
    why: about(text, 'why, a sentence'),
  },
  'scope-entered': {
    name: about(
      text,
      'its name, a word of the template; its memory files are in `steps/NAME/` of the folder of the session',
    ),
    goal: about(text, 'the task of its rounds'),
    gates: about(listOf(gate), 'gates that must pass before it is done, as in `session-created`'),
    tree: about(text, 'fingerprint of the work tree that it begins with'),
    protectFrom: about(
      optional(text),
      'fingerprint to compare protected files with, if an earlier scope changed some and was given up, or an earlier session was not done; left out: `tree`',
    ),
    programs: about(
      optional(text),
      'versions and hashes of the programs at its start, to compare with later ones; left out: its gates protect nothing',
    ),
  },
  'scope-left': {
    step: about(optional(number), 'the step that leaves it; left out: none does'),
    name: about(text, 'as in `scope-entered`'),
    outcome: about(
      oneOf('done', 'given-up'),
      '`done`: a claim was accepted; `given-up`: the template left it, or it made no progress',
    ),
    why: about(nullOr(text), 'why it is given up, a sentence; `null` if it is done'),
  },
})

const key = about(text, 'the name of the secret, as of a variable')

/** End of a command of `run_shell`, or of a hook. */
const shellStatus = oneOf('passed', 'failed', 'timed-out', 'not-started', 'broken-off')

const hook = {
  round: about(number, 'the one that ended last; of `before_round`: the next one'),
  hook: about(
    checkedAs(text, oneOf(...HOOK_MOMENTS)),
    'the moment: `before_round`, `after_round`, `on_claim`, `on_done`, `on_end`',
  ),
  of: about(
    oneOf('person', 'project'),
    'the owner of the settings file that names it: `person`, or `project`, whose hooks run in the sandbox',
  ),
}

/** Events of hooks, of the commands that codemachine runs for agents, and of the secrets that these commands need. */
export const shellEvent = variant('type', {
  'hook-started': hook,
  'hook-ended': {
    ...hook,
    run: about(text, 'the line for a shell'),
    status: about(shellStatus, 'as in `shell-ran`'),
    exitCode: about(nullOr(number), '`null` if it did not end by itself'),
    durationMs: number,
    output: about(text, 'the end of its output, at most 4,000 characters'),
    problem: about(nullOr(text), 'why it could not be run, a sentence; `null` if it ran'),
    refuses: about(
      optional(literal(true)),
      'codemachine refuses because of it: `before_round` the round, `after_round` and `on_claim` the claim; left out: it refuses nothing',
    ),
  },
  'shell-ran': {
    round: about(number, 'the round that asked for it'),
    command: about(text, 'the line for a shell, at most 16,000 characters'),
    secrets: about(listOf(text), 'the names of the secrets that it had as variables'),
    status: about(
      shellStatus,
      '`passed`: its exit code is 0; `failed`; `timed-out`; `not-started`: there is nothing that could be run; `broken-off`: a person, a limit or the end of the round cut it short',
    ),
    exitCode: about(nullOr(number), '`null` if it did not end by itself'),
    stdout: about(text, 'the end of its output, at most 16,000 characters'),
    stderr: about(text, 'the same of its stderr'),
    durationMs: number,
    problem: about(nullOr(text), 'why it could not run, a sentence; `null`: it ran'),
    withheld: about(
      optional(literal(true)),
      'its output is kept back whole, for it had a secret that is too short to be found in it',
    ),
    printed: about(optional(listOf(text)), 'the names of secrets that it printed; codemachine removed them'),
    leaked: about(
      optional(listOf(text)),
      'files with a secret in them afterwards, relative to the work directory, with `/`; agents can no longer read them',
    ),
  },
  'secret-asked': {
    round: about(number, 'the round that needs it'),
    key,
    question: about(text, 'its purpose, in the words of the agent'),
    reason: about(
      nullOr(text),
      'why the one that is there does not work, in the words of the agent; `null`: there is none',
    ),
  },
  'secret-set': { key: about(text, 'the name of a secret that a person has set from elsewhere') },
  'secret-confirmed': {
    step: step,
    key,
    ok: about(flag, 'whether the secret exists and passes its check, if any'),
    problem: about(nullOr(text), 'why not, a sentence; `null` if it is'),
    missing: about(optional(literal(true)), 'there is no secret of this name; left out: there is one'),
  },
})
