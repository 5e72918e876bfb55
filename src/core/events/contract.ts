import { about, fields, flag, listOf, nullOr, number, oneOf, optional, text, unchecked, variant } from './schema.ts'
import { asAskedFor, gateStatus, roundOutcome, tokenCounts } from './shapes.ts'

/** Settings to write and prove a session's contract. */
export const proveTerms = fields({
  author: about(nullOr(text), 'the model of the author; `null`: the model of the rounds'),
  authorEngine: about(optional(nullOr(text)), 'the engine of the author; `null` or left out: the engine of the rounds'),
  controlEngine: about(
    optional(nullOr(text)),
    'the engine that writes wrong versions; `null` or left out: the engine of the author',
  ),
  control: about(nullOr(text), 'the model that writes wrong versions; `null`: the model of the author'),
  holdOut: about(number, 'share of the sentences whose checks no round sees, 0 to 1'),
  controls: about(number, 'the most wrong versions for a sentence'),
  required: about(flag, 'whether the session is done only if all is proved'),
  only: about(flag, 'whether the session ends once the contract is accepted'),
})

const checkFile = fields({ path: about(text, 'relative to the folder of the check, with `/`'), text })

const check = fields({
  run: about(text, 'a line for a shell, run in a copy of the tree; `{files}` stands for the folder of its files'),
  seconds: about(number, 'how long it may take'),
  needs: about(nullOr(text), 'its requirements, in words; `null`: none'),
  files: listOf(checkFile),
})

const sentence = fields({
  id: about(text, '`S1`, `S2`, …'),
  quote: about(text, 'verbatim from the goal'),
  kind: about(
    oneOf('must', 'must-not', 'keep', 'not-checkable', 'context'),
    '`must`; `must-not`; `keep`: it is true before the work, and must stay true; `not-checkable`: see `reason`; `context`: it asks for nothing',
  ),
  reason: about(nullOr(text), 'why no check can tell; `null` where one can'),
  checks: listOf(check),
})

const versionEdit = fields({
  path: text,
  find: about(nullOr(text), 'the text to replace, which occurs once; `null`: the whole file'),
  text: about(text, 'the new text'),
})

const ofRound = about(unchecked(number), 'the round that ended last; `0`: none has')
const ofSentence = about(text, 'the id of the sentence')

/** Events of the contract: the request, sentence by sentence, and its proof. */
export const contractEvent = variant('type', {
  'contract-turn-started': {
    round: ofRound,
    role: about(
      oneOf('author', 'control'),
      '`author`: writes the contract; `control`: writes wrong versions of the work',
    ),
    sentence: about(optional(text), 'the one that it is about; left out: all'),
    engine: about(optional(text), 'the engine; left out: the engine of the rounds'),
    reaches: about(optional(listOf(text)), 'hosts of an engine named here, as in `round-started`'),
    provider: about(optional(text), 'as in `round-started`'),
    model: asAskedFor,
    effort: asAskedFor,
  },
  'contract-turn-ended': {
    round: ofRound,
    role: about(oneOf('author', 'control'), 'as in `contract-turn-started`'),
    sentence: about(optional(text), 'as in `contract-turn-started`'),
    outcome: about(roundOutcome, 'how its turn ended, as in `round-ended`'),
    problem: about(nullOr(text), 'why its answer could not be used; `null`: it could'),
    durationMs: number,
    tokens: about(nullOr(tokenCounts), 'TokenCounts of its threads; `null` if none were reported'),
  },
  'contract-drafted': {
    version: about(number, 'counted from 1 in the session'),
    by: about(oneOf('author', 'person'), 'who wrote it'),
    sentence: about(optional(text), 'the only sentence with new checks; left out: all have new ones'),
    sentences: about(
      listOf(sentence),
      '`[{ id, quote, kind, reason, checks }]`, at most 40. `quote`: verbatim from the goal; `kind`: `must`, `must-not`, `keep` (true before the work, and must stay true), `not-checkable` (`reason` says why) or `context` (it asks for nothing); `checks`: `[{ run, seconds, needs, files: [{ path, text }] }]`, where `{files}` in `run` stands for the folder of the files',
    ),
    uncovered: about(listOf(text), 'parts of the goal that no sentence quotes, at most 20'),
  },
  'contract-dropped': {
    version: about(number, 'a draft that does not count any more'),
    why: about(text, 'a sentence'),
  },
  'contract-frozen': {
    version: about(number, 'the draft that counts from now on'),
    by: about(
      oneOf('person', 'default', 'controls'),
      '`person`; `default`: nobody answered in time; `controls`: a new check catches a wrong version that no check caught',
    ),
    heldOut: about(listOf(text), 'ids of the sentences whose checks no round sees'),
    problem: about(nullOr(text), 'why no check is held out, a sentence; `null`: as configured'),
  },
  'contract-left': {
    by: about(oneOf('person', 'codemachine'), 'who decided to continue without a contract'),
    why: about(text, 'a sentence'),
  },
  'check-started': {
    round: ofRound,
    sentence: ofSentence,
    check: about(number, 'number within its sentence, from 1'),
    when: about(
      oneOf('before', 'after-round', 'claim', 'second'),
      '`before`: on the tree before the work; `after-round`; `claim`: a round claimed done; `second`: a new check runs on the claimed work',
    ),
  },
  'check-ended': {
    round: ofRound,
    sentence: ofSentence,
    check: about(number, 'as in `check-started`'),
    when: about(oneOf('before', 'after-round', 'claim', 'second'), 'as in `check-started`'),
    status: about(gateStatus, 'as in `gate-ended`'),
    exitCode: about(nullOr(number), '`null` if it did not end by itself'),
    durationMs: number,
    output: about(text, 'its last lines of output, at most 4,000 characters'),
    problem: about(nullOr(text), 'why it could not run, a sentence; `null`: it ran'),
    cannotRun: about(flag, 'whether it could not run, so that it says nothing about the work'),
    tree: about(text, 'fingerprint of the work tree; a copy of it was checked'),
  },
  'controls-written': {
    round: ofRound,
    sentence: ofSentence,
    tree: about(text, 'fingerprint of the work tree that they are versions of'),
    versions: listOf(fields({ summary: text, edits: listOf(versionEdit) })),
  },
  'control-tried': {
    round: ofRound,
    sentence: ofSentence,
    control: about(number, 'number within its sentence, from 1'),
    result: about(
      oneOf('caught', 'not-caught', 'same', 'broken', 'not-tried'),
      '`caught`: a check fails on it; `not-caught`; `same`: it is the same program; `broken`: it breaks more than its sentence, see `problem`; `not-tried`: see `problem`',
    ),
    check: about(nullOr(number), 'the check that caught it; `null`: none'),
    diff: about(text, 'its difference, at most 8,000 characters'),
    problem: about(nullOr(text), 'why it was not tried, or does not count; `null` if it does'),
  },
})
