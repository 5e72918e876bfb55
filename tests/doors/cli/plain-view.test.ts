import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { Item } from '../../../src/core/events/items.ts'
import type { SessionOutcome } from '../../../src/core/events/outcome.ts'
import { emptyState, type PlanStep } from '../../../src/core/state/state.ts'
import { plainView } from '../../../src/doors/screen/plain-view.ts'
import { promise } from '../../support/promise.ts'
import { fold } from '../../support/session-events.ts'
import { hostileText } from '../screen/hostile-text.ts'
import {
  local,
  moreSamples,
  recorded,
  sampleEvents,
  sampleItems,
  sampleLiveEvents,
  sampleOutcomes,
} from '../screen/samples.ts'

/** What the view writes for one event of a session in `/work`, a build if the event is of a part of one; the first line without its time. */
function shown(event: SessionEvent, colour = false): string {
  let text = ''
  const view = plainView(
    line => {
      text += line
    },
    { colour },
  )
  const begins = 'part' in event ? moreSamples['a build'] : sampleEvents['session-created']
  const [created, then] = recorded([begins, event])
  if (!created || !then) throw new Error('no event')
  view.event(then, fold(fold(emptyState('20261120_1'), created), then))
  return text
}

const OFFER = '          Nothing checks this goal. --prove checks each sentence.\n'

promise('O91')
test('a plan that changes is told by the steps that have changed, and by nothing where none has', () => {
  let text = ''
  const view = plainView(
    part => {
      text += part
    },
    { colour: false },
  )
  const plan = (...statuses: PlanStep['status'][]): SessionEvent => ({
    ...sampleEvents['plan-updated'],
    steps: statuses.map((status, i) => ({ step: `step ${i + 1}`, status })),
  })
  const events = recorded([
    sampleEvents['session-created'],
    plan('in-progress', 'pending'),
    plan('completed', 'in-progress'),
    plan('completed', 'in-progress'),
  ])
  let state = emptyState('20261120_1')
  for (const event of events) {
    state = fold(state, event)
    view.event(event, state)
  }
  expect(text.replace(/^.*\n {10}.*\n/, '')).toBe(
    '22:41:08  plan  [>] step 1  [ ] step 2\n22:41:09  plan  [x] step 1 · 1 of 2 steps  [>] step 2\n',
  )
})

const line = (event: SessionEvent) => shown(event).replace(/^22:41:08 {2}/, '')
const item = (of: Item) => line({ type: 'item-completed', round: 1, item: of })
const command = (of: Partial<Extract<Item, { kind: 'command' }>>) => item({ ...sampleItems.command, ...of })
const end = (outcome: SessionOutcome) => line({ ...sampleEvents['session-ended'], outcome })

describe('each event is a line', () => {
  const expected: Record<SessionEvent['type'], string> = {
    'session-created': `session 20261120_1  build X  (goal, workspace-write, at most 20 rounds, no gates)\n${OFFER}`,
    'session-resumed': 'session 20261120_1 continues  build X  (at most 30 rounds, no gates)\n',
    'session-moved': 'the worker w2 on night-desk-2 takes over the session (takeover 2)\n',
    'settings-taken':
      'new settings: rounds is 5 (it was 20): /home/me/.config/codemachine/config.toml:1; notify.webhook changed: /home/me/.config/codemachine/config.toml:3\n',
    'keep-awake': 'the machine is kept awake by systemd-inhibit\n',
    'round-started': 'round 1  goal-worker, codex 0.169.0, model gpt-6\n',
    'turn-started': '',
    'item-completed': 'All is well.\n',
    'plan-updated': 'plan  [x] a  [>] b  [ ] c\n',
    usage: '',
    limits: '',
    'model-rerouted': 'codex changed the model: gpt-6 → gpt-5 (highRiskCyberActivity)\n',
    'request-answered': 'codex asked to run: rm -rf build  → codemachine: declined\n',
    'answer-given': 'answered verdict: outputs/1-verdict.json, 21 bytes\n',
    'answer-refused': `the answer verdict cannot be used:
          - \`word\` is 7; it must be a text.
`,
    'output-kept': 'kept: outputs/2-notes.md, 2 KiB\n',
    steered: 'a person says, to the next round: Leave the API.\n          Please.\n',
    warning: 'warning: The disk is nearly full.\n',
    error: 'error: stream disconnected: reset by peer (codex tries again)\n',
    'turn-continued': 'turn failed for the network; continuing in the same thread\n',
    'winding-down': 'the time is used up: the agent is told to stop safely, and has 5 min\n',
    'machine-slept': 'the machine slept for 2 h 10 min; nothing was lost\n',
    'round-ended': 'round 1 ended: worked, 3m12s, 45.2k tokens, 7 files changed\n',
    waiting:
      'waiting until 2026-11-21 05:02, 6 h 21 min from now (usage limit: You have hit your usage limit); codemachine retry ends the wait\n',
    'wait-ended': 'the wait is over\n',
    'engine-changed':
      'claude runs the rounds now: You have hit your usage limit; the usage limit of codex resets 2026-11-21 03:14\n',
    'stop-asked': 'stopping now\n',
    paused: '',
    held: 'paused; codemachine unpause continues\n',
    'hold-until': 'continues by itself in 30 min, at 23:11\n',
    unpaused: 'a person ended the pause: continuing\n',
    'interrupt-asked': '',
    'skip-asked': 'skipped: this session ends now, and the next prompt in the queue starts\n',
    'replan-asked': 'a person asked to change the plan: Do the docs first.\n          Leave out the API.\n',
    replanned: `plan changed in MAIN.md and tasks.json; codemachine replan changes it again
          --- MAIN.md
          +++ MAIN.md
          @@ -9,2 +9,1 @@
          -- [ ] T1 the API
           - [ ] T2 the docs
          --- tasks.json
          +++ tasks.json
          @@ -1,1 +1,2 @@
           {
          +--x
`,
    stuck: 'no progress in 3 rounds: the next round is told to try another approach\n',
    'memory-broken':
      'tasks.json could not be used: line 3 is not JSON. Its content is saved as tasks.json.broken-1. codemachine restored the last good version.\n',
    'goal-restored': 'the goal in MAIN.md was changed and is restored: it holds your own words.\n',
    'repository-restored':
      "restored the repository's own settings after the round: .git/config, .git/hooks/pre-commit (kept as /records/set-aside/1)\n",
    savepoint: '',
    'settings-changed':
      'warning: Round 1 changed codemachine.toml. Lower limits apply from the next round, all else from the next run.\n',
    'counter-proof': 'gate tests fails on the files from before the work; it passes because of: src/parse.ts\n',
    'gate-configuration': `2 files in the configuration of the gates are new or changed since the start: a reviewer must agree before done
          .npmrc: new
          Makefile: changed
`,
    'protected-changed': `round 1 changed 2 protected files. Unless they are restored, a reviewer must agree before done
          tests/a.test.ts: tests in it marked to be skipped  (gate tests)
          tests/b.test.ts: deleted  (gate tests)
`,
    'step-started': '',
    looked: 'looked: plan\n',
    'command-ran': `command lint: failed (exit code 1), 4.2 s
          it changed 1 file: .cache/lint.json
            src/a.ts: an unused import
`,
    wrote: 'wrote 1 file (2 KiB): docs/plan.md\n',
    noted: 'Passed over: the tests have passed.\n',
    'state-entered': 'state: weaving → mending (A thread broke.)\n',
    kept: 'kept plan/v1.md (2 KiB)\n',
    'gates-added': 'new checks that must pass: gates npm run lint (A person accepted it with the plan.)\n',
    'scope-entered': 'step fix runs until it is done: gates npm test\n',
    'hook-started': '',
    'hook-ended': `hook on_claim: failed (exit code 1), 1.2 s: ./ci-is-green
            CI of main is red.
`,
    'shell-ran': `run with STRIPE_API_KEY: failed (exit code 22), 310 ms: curl -s -H "Authorization: Bearer $STRIPE_API_KEY" https://api.example.com/v1/charges
          it printed STRIPE_API_KEY, which was removed
          a secret was found in debug.log; agents cannot read it any more, and no savepoint has it
            curl: (22) The requested URL returned error: 401 for [secret STRIPE_API_KEY]
`,
    'secret-asked': `needs the secret STRIPE_API_KEY: A test key of the payment service, from its page "Developers".
          the stored value does not work: The service answered 401: the key needs the right to read charges.
`,
    'secret-set': 'the secret STRIPE_API_KEY was set\n',
    'secret-confirmed': 'the secret STRIPE_API_KEY cannot be used: Its check failed (exit code 22).\n',
    'scope-left': 'step fix ended, not done: It has had 10 rounds.\n',
    'gate-started': '',
    'gate-ended': `gate tests: failed (exit code 1), 4.2 s
          it changed 1 file itself, which does not count as the agent's work: coverage.txt
            2 tests
            1 failed: adds numbers
`,
    'question-asked': `question Q1: Which database?
          1. SQLite
          2. PostgreSQL
          until you answer, the agent assumes: SQLite, as nothing runs beside it.
          codemachine questions answer 20261120_1/Q1 "…" answers it, or give the number of an option
`,
    'decision-asked': `you decide: Which database?
          SQLite is there already.
            See docs/database.md
            sqlite: Keep SQLite
            other: Another one (say which)
          after 10 min without an answer: Keep SQLite; answer with codemachine decide
`,
    'decision-made': `decided by a person: other: PostgreSQL.
          The newest.
`,
    'plan-refused': `the plan cannot be used:
          tasks.json: tasks[3].phase is "Bulding"; use Planning, Building, Testing or Runtime.
          agents/qa.md is empty.
`,
    'plan-ready': `the plan is ready: 2 tasks, with prompts for frontend-dev, qa-engineer
          Planning
            T1  Choose the stack
          Building
            T2  Create homepage component
`,
    'agent-started':
      'agent frontend-dev-20261120T224108000 starts: T2: Create the homepage. ⏎ Use what is in src.  (writes in src/web; engine codex; model gpt-5-codex)\n',
    'agent-ended': `agent frontend-dev-20261120T224108000 completed, 3m12s, 45.2k tokens
          The homepage is there.
          Its tests pass.
`,
    'task-judged': 'task T2 Create homepage component: not accepted as done: The check `tests` fails.\n',
    'tasks-judged': '',
    'review-started':
      'review 1 starts: you asked for a review before done, and protected files have changed  (gpt-6 high)\n',
    'review-ended': `review 1: 1 finding, 1m02s, 9.1k tokens
          The sum of nothing is missing.
          - major  src/a.ts:3  It fails on an empty list.
            fix: Answer 0.
`,
    'done-nominated': 'The agent says it is done (MAIN.md and tasks.json)\n',
    'done-refused': 'Not accepted: tasks.json still has 1 task. Work continues.\n',
    'contract-turn-started': 'writing the contract: what you asked for, sentence by sentence, with checks  (gpt-6)\n',
    'contract-turn-ended':
      'the author of the contract gave no usable answer: S1: the goal does not contain this quote: "build Y"  (42.0 s, 9.1k tokens)\n',
    'contract-drafted': `contract, version 1: 1 sentence, 1 check
            S1 (must be true) build X
`,
    'contract-dropped':
      'the new check is not used: It fails on the finished work, or also passes on the wrong version.\n',
    'contract-frozen': 'contract, version 1, is accepted by you; agents do not see the checks of S1\n',
    'contract-left': 'the session continues without a contract: A person wanted none.\n',
    'check-started': '',
    'check-ended': 'S1, check 1: failed (exit code 1), 300 ms\n',
    'controls-written': '',
    'control-tried': 'wrong version 1 for S1: caught by check 1\n',
    'done-accepted': 'Accepted (files at 0123456789ab): verified\n',
    'session-ended':
      'session 20261120_1 ended: done, not verified: no gates are configured  (3 rounds, 2h05m, 1.2M tokens)\n          Next time: --prove checks each sentence.\n',
    published: 'published: https://github.com/acme/shop/pull/7 (draft)\n',
  }
  test.each(Object.values(sampleEvents))('$type', event => {
    expect(line(event)).toBe(expected[event.type])
  })

  const inOtherShapes: Record<keyof typeof moreSamples, string> = {
    'of an issue': `session 20261120_1  build X  (goal, issue 3 (https://github.com/acme/shop/issues/3): Dark mode, workspace-write, at most 20 rounds, no gates)\n${OFFER}`,
    'not published':
      'not published: gh is not logged in to github.com. Pushed: the branch codemachine/20261120_1 is on origin.\n',
    'what a round had left running': 'warning: The disk is nearly full.\n',
    'several warnings': '2 warnings: details: codemachine status; fixes: codemachine doctor\n',
    'goes on by itself': 'nobody answered: continuing\n',
    'goes on by a changed plan': 'a person asked to change the plan; the session then continues: Do the docs first.\n',
    'looked at much': 'looked: plan\n',
    'a command with a short secret': `run with STRIPE_API_KEY: failed (exit code 22), 40 ms: ./charge
          its output is withheld: a secret in it is too short to be found
`,
    'asks for a secret': `you decide: Which database?
          SQLite is there already.
            See docs/database.md
            sqlite: Keep SQLite
            other: Another one (say which)
          after 10 min without an answer: Keep SQLite; answer with codemachine decide
`,
    'a round that only looks': expected['round-started'],
    'a round of an agent of another maker':
      'round 1  goal-worker, claude in the sandbox of codex 0.169.0, model gpt-6\n',
    'a text that was looked for': 'context.md was not saved: the folder is a link.\n',
    'a text that is kept in the records, too': 'plan/v1.md was not saved: plan is a link.\n',
    'command kept': `command lint: failed (exit code 1), 4.2 s
          it changed 1 file: .cache/lint.json
            src/a.ts: an unused import
`,
    'gate-started in a scope': expected['gate-started'],
    'counter-proof in a scope':
      `gate tests may prove nothing: a reviewer must agree before done
          The check ` +
      '`tests`' +
      ` failed earlier, but now passes without the work. These files make it pass: tests/test_0.py.
          The check ` +
      '`tests`' +
      ` ran an unknown number of tests; earlier in the session it ran 12 tests.
`,
    'gate not counter-proved':
      'gate tests cannot be tried on the files from before the work: it fails in a checkout of its own\n',
    'gate that passed before': '',
    'gate with tests': 'gate tests: passed, 4.2 s\n',
    'gate-ended in a scope': expected['gate-ended'],
    'review-started in a scope': expected['review-started'],
    'review-ended in a scope': expected['review-ended'],
    'protected-changed in a scope': expected['protected-changed'],
    'gate-configuration in a scope': expected['gate-configuration'],
    'done-nominated in a scope': `step fix: ${expected['done-nominated']}`,
    'done-refused in a scope': `step fix: ${expected['done-refused']}`,
    'done-accepted in a scope': 'step fix is done: verified\n',
    'nothing written': 'nothing was written: docs is a link.\n',
    'template claims': 'No work is left. codemachine checks the result\n',
    'claims without work':
      'The agent says it is done (MAIN.md and tasks.json), and that no work was needed: X was built before.\n',
    'usual configuration': '',
    'configuration taken back': 'the configuration of the gates is unchanged again\n',
    'every limit': `session 20261120_1  build X  (goal, workspace-write, at most 20 rounds, 8 h, 5M tokens, no gates)\n${OFFER}`,
    'goes on': `session 20261120_1  build X  (goal, continues from 20261119_2, workspace-write, at most 20 rounds, no gates)\n${OFFER}`,
    'only replays': 'session 20261120_1  build X  (goal, workspace-write, at most 20 rounds, no gates)\n',
    'begins with texts': `session 20261120_1  build X  (goal, continues from the codex conversation 0199a0b0-5189-7e10-… of 17:40, workspace-write, at most 20 rounds, no gates)\n${OFFER}`,
    'a build': `session 20261120_1  build X  (build, workspace-write, at most 20 rounds, no gates)\n${OFFER}`,
    'round of a build': 'round 1  team building: agents-builder, codex 0.169.0, model gpt-6\n',
    'a replay': 'round 1  goal-worker, replay 0.1.0, model gpt-6\n',
    'replayed at the end':
      'session 20261120_1 ended: replayed: a replay never counts as done  (3 rounds, 2h05m, 1.2M tokens)\n',
    'command of an agent': 'frontend-dev  $ npm test  → exit 0 in 4.2 s\n',
    'words of an agent': '',
    'usage of an agent': '',
    'plan put back': `the old plan is restored in tasks.json; codemachine replan changes it again
          + T1 the API
          ~ T2 docs → the docs: new phase, now after T1
`,
    'changes of an agent': 'frontend-dev  ✎ new src/a.ts (+2), deleted src/b.ts\n',
    'agent asked by another':
      'agent qa-engineer-20261120T224108001 starts: T2: Look at the tests.  (asked by frontend-dev-20261120T224108000; engine codex)\n',
    'agent that failed': `agent frontend-dev-20261120T224108000 failed, 3m12s
          codex ended: exit code 1.
`,
    'task done': 'task T2 Create homepage component: done\n',
    'task failed': 'task T2 Create homepage component: not done yet: Nothing was written.\n',
    'task open again': 'task T2 Create homepage component: open again\n',
    'task parked':
      'task T2 Create homepage component: parked after too many failures; the other tasks continue: It failed 5 times.\n',
    'new task': 'task T2 Create homepage component: new in the plan\n',
    'task taken out': 'task T2 Create homepage component: no longer in the plan\n',
    'gate for tasks': 'gate tests, for the tasks of round 1: passed, 4.2 s\n',
    'no limit': `session 20261120_1  build X  (goal, workspace-write, without a limit, no gates)\n${OFFER}`,
    'one round': `session 20261120_1  build X  (goal, workspace-write, at most 1 round, no gates)\n${OFFER}`,
    'resumed for a time': 'session 20261120_1 continues  build X  (at most 1 min 30 s, 500 tokens, no gates)\n',
    'no keeper': '',
    'not kept': '',
    'secret that is not there': 'the secret STRIPE_API_KEY cannot be used: There is no secret STRIPE_API_KEY.\n',
    'half kept': 'the machine is kept awake by caffeinate: The lid ends it.\n',
    'no network': 'the network is down; codex keeps trying\n',
    'given up': '',
    'silent turn': 'turn failed (silence); continuing in the same thread\n',
    'out of tokens': 'the tokens are used up: the agent is told to stop safely, and has 1 min 30 s\n',
    'out of its own time': 'the time of this round is used up: the agent is told to stop safely, and has 1 min 30 s\n',
    'out of usage': 'the usage limit reached your --max-usage: the agent is told to stop safely, and has 5 min\n',
    'short sleep': 'the machine slept for 45.9 s; nothing was lost\n',
    'wait for no reason given':
      'waiting until 22:41, 20 s from now (the server is busy); codemachine retry ends the wait\n',
    'wait for a provider':
      'waiting at most until 2026-11-21 05:02, 6 h 21 min from now (network: The provider local does not answer at http://127.0.0.1:8080/v1 (ECONNREFUSED)); codemachine retry ends the wait\n',
    'round on a provider': 'round 1  goal-worker, codex 0.169.0, provider local, model qwen3-coder:30b\n',
    'review on another engine':
      'review 1 starts: you asked for a review before done, and protected files have changed  (claude)\n',
    'contract of another engine':
      'writing the contract: what you asked for, sentence by sentence, with checks  (claude)\n',
    'with tests that were found': `session 20261120_1  build X  (goal, workspace-write, at most 20 rounds, no gates)\n          Nothing checks this goal. --verify auto runs "npm test"; --prove checks each sentence.\n`,
    'review on a provider':
      'review 1 starts: you asked for a review before done, and protected files have changed  (qwen3-coder:30b high)\n',
    'wait in the past':
      'waiting until 22:00, which is over (usage limit: You have hit your usage limit); codemachine retry ends the wait\n',
    'wait ended by a person': 'a person ended the wait: trying again\n',
    'wait broken off': 'the wait is interrupted; it continues when the session is resumed\n',
    'plan left alone': 'the plan did not change\n',
    'stop now': 'stopping now\n',
    'agent stopped': 'frontend-dev was stopped by a person; the round continues\n',
    'answer to an agent': 'a person answers Q1 to frontend-dev: PostgreSQL.\n',
    'question of an agent': `question Q1 of frontend-dev-20261120T224108000: Which database?
          1. SQLite
          2. PostgreSQL
          until you answer, the agent assumes: SQLite, as nothing runs beside it.
          codemachine questions answer 20261120_1/Q1 "…" answers it, or give the number of an option
`,
    'with gates': `session 20261120_1  build X  (goal, workspace-write, at most 20 rounds)
          gates tests, lint (not required), types (after every round); a review before done (gpt-6 high)
`,
    'only a review': `session 20261120_1  build X  (goal, workspace-write, at most 20 rounds, no gates)
          a review before done
`,
    'gates given at resume': 'session 20261120_1 continues  build X  (at most 30 rounds)\n          gates tests\n',
    'gate passed': 'gate tests: passed, 4.2 s\n',
    'gate failed before': `gate tests, before round 1: failed (exit code 1), 4.2 s
            2 tests
            1 failed: adds numbers
`,
    'gate flaky': `gate tests: flaky, 4.2 s; it failed (exit code 1), and passed when it was run again on the same files
            2 tests
            1 failed: adds numbers
`,
    'gate timed out': 'gate tests, after round 1: timed out, 10m00s\n',
    'gate not started': 'gate tests: could not be run, 12 ms\n          There is no command vitests.\n',
    'gate broken off': 'gate tests: broken off, 4.2 s\n',
    'gate that changes much': `gate tests: passed, 4.2 s
          it changed 900 files itself, which does not count as the agent's work: out/0, out/1, out/2, out/3, out/4, out/5, out/6, out/7, out/8, out/9, … and 890 more
`,
    'many protected': `round 1 changed 70 protected files. Unless they are restored, a reviewer must agree before done
          tests/a.test.ts: tests in it marked to be skipped  (gate tests)
          tests/b.test.ts: deleted  (gate tests)
          … and 68 more
`,
    'open question': `question Q2: Which database?
          until you answer, the agent assumes: SQLite, as nothing runs beside it.
          codemachine questions answer 20261120_1/Q2 "…" answers it
`,
    'review asked for': 'review 1 starts: you asked for a review before done\n',
    'review agreed': 'review 1: agreed, 1m02s\n          All of it is there.\n',
    'review found again': `review 2: 2 findings, 1 of them found before (you decide), 1m02s, 9.1k tokens
          - critical  Half is missing.
          - minor  src/b.ts  A name misleads.  (found before; you decide)
            fix: Say what it does.
`,
    'review without answer': 'review 1 gave no answer that can be read, 1m02s, 9.1k tokens\n',
    'review broken off': 'review 1 gave no answer: usage limit: You have hit your usage limit, 1m02s\n',
    'refused by a gate': 'Not accepted: The check `tests` fails (exit code 1). The next round works on it.\n',
    'contract is wanted':
      'session 20261120_1  build X  (goal, workspace-write, at most 20 rounds, no gates, proved by a contract)\n',
    'contract is wanted from now on':
      'session 20261120_1 continues  build X  (at most 30 rounds, no gates, proved by a contract)\n',
    'one more check': 'one more check of S1\n',
    'one more check is written': 'writing one more check of S1  (gpt-6)\n',
    'no more check':
      'the author of the contract gave no usable answer: S1: the goal does not contain this quote: "build Y"  (42.0 s, 9.1k tokens)\n',
    'accepted unverified': 'Accepted (files at 0123456789ab): not verified: no gates are configured\n',
    'refused again': 'the same claim was refused 4 times: the next round is given more reasoning effort\n',
  }
  test.each(Object.entries(moreSamples))('%s', (shape, event) => {
    expect(line(event)).toBe(inOtherShapes[shape as keyof typeof moreSamples])
  })

  test('it begins with the local time', () => {
    expect(shown(sampleEvents.warning)).toBe('22:41:08  warning: The disk is nearly full.\n')
  })

  test('what codex says of a failure that is waited for is said once, with the wait', () => {
    const { 'round-ended': ended, 'round-started': started, error, waiting } = sampleEvents
    const message = "You've hit your usage limit. Try again at 7:48 PM."
    const outcome = { class: 'window', message } as const
    const said = lines(
      started,
      { ...error, message, willRetry: false },
      { ...ended, outcome },
      { ...waiting, cause: outcome },
    )
    expect(said.slice(1).map(text => text.replace(/, 3m12s.*|until .* now /, ''))).toEqual([
      'round 1 ended: usage limit',
      "waiting (usage limit: You've hit your usage limit. Try again at 7:48 PM); codemachine retry ends the wait",
    ])
  })

  test.each([
    ['item/commandExecution/requestApproval', `/bin/bash -c 'rm -rf "build x"'`, 'asked to run: rm -rf "build x"'],
    ['item/fileChange/requestApproval', 'a file change', 'asked to change files'],
    ['item/fileChange/requestApproval', 'The lock is stale.', 'asked to change files: The lock is stale.'],
    ['item/permissions/requestApproval', 'more permissions', 'asked for more permissions'],
    ['item/permissions/requestApproval', 'To push.', 'asked for more permissions: To push.'],
    ['item/tool/requestUserInput', 'Which port?', 'asked: Which port?'],
    [
      'mcpServer/elicitation/request',
      'a question of the MCP server "docs"',
      'passed on a question of the MCP server "docs"',
    ],
    ['item/tool/call', 'find', 'asked for the tool find'],
    ['constructor', 'x', 'asked (constructor): x'],
  ])('a request (%s: %s) is told in words', (method, subject, words) => {
    expect(line({ ...sampleEvents['request-answered'], method, subject })).toBe(
      `codex ${words}  → codemachine: declined\n`,
    )
  })

  test('a round that failed says why, and that nothing changed', () => {
    const outcome = { class: 'quota', message: 'No credit is left.' } as const
    expect(line({ ...sampleEvents['round-ended'], outcome, tokens: null, changedCount: 0, durationMs: 950 })).toBe(
      'round 1 ended: no credit: No credit is left, 950 ms, no files changed\n',
    )
  })
})

/** What the view writes after the first event of a session, without times; a number is a `still-waiting` of so many minutes. */
function lines(...happening: readonly (SessionEvent | number)[]): string[] {
  const written: string[] = []
  const view = plainView(text => written.push(text.slice('22:41:07  '.length, -1)), { colour: false })
  const events = recorded([
    moreSamples['every limit'],
    ...happening.filter((of): of is SessionEvent => typeof of !== 'number'),
  ])
  let state = emptyState('20261120_1')
  const next = () => {
    const event = events.shift()
    if (!event) throw new Error('no event')
    state = fold(state, event)
    view.event(event, state)
  }
  next()
  for (const of of happening) {
    if (typeof of === 'number') view.live({ type: 'still-waiting', leftMs: of * 60_000 })
    else next()
  }
  return written.slice(1)
}

/** Minutes from one down to another. */
const minutes = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, i) => from - i)

describe('what depends on what came before', () => {
  const { 'round-started': started, 'round-ended': ended, 'stop-asked': stopAsked, paused } = sampleEvents
  const offline = moreSamples['no network']
  const away = 'the network is down; codex keeps trying'

  test('that the network is away is said once, and again when it has been back', () => {
    const said = lines(started, offline, offline, sampleEvents.usage, offline, offline, ended, started, offline)
    expect(said.filter(text => text === away)).toHaveLength(3)
    expect(lines(started, offline, offline, offline).slice(1)).toEqual([away])
  })

  test('the part of the usage limit at which a round winds down is named', () => {
    const limits = {
      ...sampleEvents.limits,
      secondary: { usedPercent: 90.4, windowMinutes: 10_080, resetsAt: null },
    }
    expect(lines(limits, moreSamples['out of usage'])).toEqual([
      '90 % of the usage limit is used, as much as --max-usage allows: the agent is told to stop safely, and has 5 min',
    ])
  })

  test('the limit at which a round winds down is named', () => {
    expect(lines(sampleEvents['winding-down'], moreSamples['out of tokens'])).toEqual([
      '8 h of time are used up: the agent is told to stop safely, and has 5 min',
      '5M tokens are used up: the agent is told to stop safely, and has 1 min 30 s',
    ])
  })

  test('while a round runs, a stop and a pause come after it', () => {
    expect(lines(started, stopAsked, paused).slice(1)).toEqual([
      'stopping after this round',
      'pausing after this round',
    ])
    expect(lines(started, moreSamples['stop now']).at(-1)).toBe('stopping now')
    expect(lines(started, sampleEvents['interrupt-asked']).at(-1)).toBe('interrupted by a person: the round ends now')
  })
})

describe('the proof of a claim', () => {
  const {
    'round-started': started,
    'round-ended': ended,
    'gate-ended': gate,
    'gate-started': gateStarted,
  } = sampleEvents
  const { 'done-nominated': nominated, 'done-accepted': accepted, 'review-ended': review } = sampleEvents
  const { 'with gates': created, 'gate passed': passed, 'gate failed before': failedBefore } = moreSamples
  const quiet = { changed: [], changedCount: 0, output: '' }
  const lint = { ...gate, ...quiet, gate: 'lint' }
  const finish = { ...sampleEvents['session-ended'], outcome: { kind: 'done', verified: true } } as const
  const agreed = moreSamples['review agreed']

  test('a gate that fails as it did before the work says so, and one that is not required holds nothing up', () => {
    expect(lines(created, failedBefore, started, ended, nominated, { ...gate, ...quiet }, lint).slice(-2)).toEqual([
      'gate tests: failed (exit code 1), 4.2 s; it failed before round 1, too',
      'gate lint: failed (exit code 1), 4.2 s; it is not required, so the session can be done without it',
    ])
    const { 'gates-added': adding, 'session-created': bare } = sampleEvents
    const added = { ...adding, gates: adding.gates.map(each => ({ ...each, name: 'tests' })) }
    expect(lines(bare, started, ended, added, failedBefore, { ...gate, ...quiet }).at(-1)).toBe(
      'gate tests: failed (exit code 1), 4.2 s; it failed when it was added, too',
    )
    const timedOut = { ...gate, ...quiet, status: 'timed-out', exitCode: null } as const
    expect(lines(created, failedBefore, timedOut).at(-1)).toBe(
      'gate tests: timed out, 4.2 s; it did not pass before round 1 either',
    )
    expect(lines(created, { ...failedBefore, status: 'flaky' }, { ...gate, ...quiet }).at(-1)).toBe(
      'gate tests: failed (exit code 1), 4.2 s; it failed and then passed on the same files before round 1',
    )
    expect(lines(created, { ...passed, when: 'before' }, { ...gate, ...quiet }).at(-1)).toBe(
      'gate tests: failed (exit code 1), 4.2 s',
    )
  })

  test('of what a gate printed the last ten lines are shown, without its colours', () => {
    const output = Array.from({ length: 30 }, (_, i) => `\u001b[31mline ${i + 1}\u001b[0m`).join('\n')
    const [, ...shown] =
      lines({ ...gate, ...quiet, output })
        .at(-1)
        ?.split('\n') ?? []
    expect(shown.map(text => text.trim())).toEqual([
      '… 20 lines before',
      ...Array.from({ length: 10 }, (_, i) => `line ${i + 21}`),
    ])
    expect(lines({ ...passed, output }).at(-1)).toBe('gate tests: passed, 4.2 s')
  })

  test('what is done is said with what proves it, and with what does not quite', () => {
    const proved = [nominated, passed, { ...passed, gate: 'types' }]
    expect(lines(created, ...proved, accepted, finish).slice(-2)).toEqual([
      'Accepted (files at 0123456789ab): verified by 2 gates',
      'session 20261120_1 ended: done, gates pass: verified by 2 gates; your request itself was not checked  (3 rounds, 2h05m, 1.2M tokens)',
    ])
    const flaky = { ...gate, ...quiet, gate: 'types', status: 'flaky' } as const
    expect(lines(created, nominated, passed, flaky, lint, agreed, accepted, finish).at(-1)).toBe(
      'session 20261120_1 ended: done, gates pass: verified by 2 gates, reviewed; flaky: types; failed, but not required: lint; your request itself was not checked  (3 rounds, 2h05m, 1.2M tokens)',
    )
    expect(lines(created, ...proved, { ...agreed, tree: 'other' }, accepted).at(-1)).not.toContain('reviewed')
    const optional = { ...created, gates: created.gates.slice(1, 2) }
    expect(lines(optional, nominated, lint, { ...accepted, verified: false }).at(-1)).toContain(
      ': not verified: no gate is required; failed, but not required: lint',
    )
    expect(lines(moreSamples['no limit'], nominated, agreed, { ...accepted, verified: false }).at(-1)).toMatch(
      /: not verified: a review agreed, but no gates are configured$/,
    )
  })

  test('questions that are left are said at the end', () => {
    const asked = sampleEvents['question-asked']
    expect(lines(asked, finish).at(-1)).toMatch(/\)\n {10}1 question was asked; codemachine questions shows it$/)
    expect(lines(asked, { ...asked, question: 'Q2', text: 'Which port?' }, finish).at(-1)).toContain(
      '2 questions were asked; codemachine questions shows them',
    )
  })

  test('a decision that was still open is said at the end, but where the session ended for the want of it', () => {
    const asked = sampleEvents['decision-asked']
    const limit = { ...finish, outcome: { kind: 'limit', limit: 'time' } } as const
    expect(lines(asked, limit).at(-1)).toMatch(
      /\n {10}The session ended without your decision. When you resume it, it asks again: Which database\?$/,
    )
    const unanswered = { ...finish, outcome: { kind: 'needs-person', reason: 'Nobody decided.', hint: null } } as const
    expect(lines(asked, unanswered).at(-1)).not.toContain('without your decision')
    expect(lines(asked, sampleEvents['decision-made'], limit).at(-1)).not.toContain('without your decision')
  })

  test("what a reviewer does is told as the reviewer's, and its answer once, in words", () => {
    const item = (of: Item) => ({ type: 'item-completed', round: 1, item: of }) as const
    const says = (text: string) => item({ ...sampleItems['agent-message'], text })
    const said = lines(
      started,
      ended,
      sampleEvents['review-started'],
      item({ ...sampleItems.command, exitCode: 0 }),
      says('It lacks a test.'),
      says(' {"verdict":"findings"}'),
      review,
      started,
      says('{"a":1}'),
    )
    expect(said.slice(3, 5)).toEqual(['reviewer  $ npm test  → exit 0 in 4.2 s', 'reviewer  It lacks a test.'])
    expect(said[5]).toMatch(/^review 1: 1 finding/)
    expect(said.at(-1)).toBe('{"a":1}')
  })

  test('a pause, a stop and an interruption name what they wait for', () => {
    const { paused, 'stop-asked': stop, 'interrupt-asked': interrupt, 'review-started': reviewStarted } = sampleEvents
    expect(lines(started, ended, gateStarted, paused, stop, interrupt).slice(2)).toEqual([
      'pausing after this gate',
      'stopping after this gate',
      'interrupted by a person: the gate ends now',
    ])
    expect(lines(started, ended, reviewStarted, paused).at(-1)).toBe('pausing after this review')
    expect(lines(started, ended, reviewStarted, moreSamples['out of tokens']).at(-1)).toContain(
      'the reviewer is told to stop safely',
    )
  })
})

describe('a wait is counted down', () => {
  const until = (minutes: number) => new Date(local(20, 22, 41) + 8_000 + minutes * 60_000).toISOString()
  const wait = (minutes: number) => ({ ...sampleEvents.waiting, until: until(minutes) })

  test('every quarter of an hour, and once in its last minute', () => {
    expect(lines(wait(40), ...minutes(39, 1)).slice(1)).toEqual([
      'still waiting: 30 min left',
      'still waiting: 15 min left',
      'still waiting: 1 min left',
    ])
  })

  test('of a short one only the last minute is said, and of one of seconds nothing', () => {
    expect(lines(wait(10), ...minutes(9, 1)).slice(1)).toEqual(['still waiting: 1 min left'])
    expect(lines(wait(0.5), 0.2).slice(1)).toEqual([])
  })

  test('a machine that slept through some of it gets one line for them', () => {
    expect(lines(wait(200), 199, 70, 69, 0.4).slice(1)).toEqual([
      'still waiting: 1 h 10 min left',
      'still waiting: 24 s left',
    ])
  })

  test('what else is said meanwhile does not begin it anew, another wait does', () => {
    expect(lines(wait(40), 30, sampleEvents.steered, 29, 28).filter(text => text.startsWith('still'))).toEqual([
      'still waiting: 30 min left',
    ])
    const twice = lines(wait(20), 15, sampleEvents['wait-ended'], wait(20), 15)
    expect(twice.filter(text => text.startsWith('still'))).toHaveLength(2)
  })

  test('a session that goes on says what it waits for first, and counts on', () => {
    const resumed = sampleEvents['session-resumed']
    expect(lines(wait(40), { ...sampleEvents['wait-ended'], reason: 'stopped' }, resumed, 39, 30).slice(2)).toEqual([
      `session 20261120_1 continues  build X  (at most 30 rounds, no gates)
          waiting until 23:21, 40 min from now (usage limit: You have hit your usage limit); codemachine retry ends the wait`,
      'still waiting: 30 min left',
    ])
    expect(lines(wait(40), sampleEvents['wait-ended'], resumed).at(-1)).not.toContain('waiting')
  })

  test('if the time is used up before, that is said, and what is left is counted to then', () => {
    const [said, ...counted] = lines(wait(9 * 60), 8 * 60 - 1, 7 * 60 + 45, 1)
    expect(said).toBe(
      'waiting until 2026-11-21 07:41, 9 h from now (usage limit: You have hit your usage limit), but the time is used up at 2026-11-21 06:41; codemachine retry ends the wait',
    )
    expect(counted).toEqual(['still waiting: 7 h 45 min left', 'still waiting: 1 min left'])
  })

  test('the line has the time at which that much is left', () => {
    let written = ''
    const view = plainView(
      text => {
        written = text
      },
      { colour: false },
    )
    const [event] = recorded([wait(40)])
    if (!event) throw new Error('no event')
    view.event(event, fold(emptyState('20261120_1'), event))
    view.live({ type: 'still-waiting', leftMs: 30 * 60_000 })
    expect(written).toBe('22:51:08  still waiting: 30 min left\n')
  })

  test('so is the time in which a person may decide, where a default is taken after it', () => {
    const asked = { ...sampleEvents['decision-asked'], until: until(10) }
    expect(lines(asked, 9, 1).slice(1)).toEqual(['still waiting: 1 min left'])
    expect(lines({ ...asked, default: null }, 9, 1).slice(1)).toEqual([])
  })

  test('after it, and where nothing is waited for, nothing is said', () => {
    expect(lines(wait(40), sampleEvents['wait-ended'], 30, 1).slice(1)).toEqual(['the wait is over'])
    expect(lines(30, 1)).toEqual([])
  })
})

test('nothing else that is live is written', () => {
  let written = ''
  const view = plainView(
    text => {
      written += text
    },
    { colour: false },
  )
  for (const event of Object.values(sampleLiveEvents)) view.live(event)
  expect(written).toBe('')
})

describe('each item is a line', () => {
  const expected: Record<Item['kind'], string> = {
    'user-message': '',
    'agent-message': 'First.\n\n          Second.\n',
    reasoning: 'thinks  Planning the change\n',
    command: '$ npm test  → exit 1 in 4.2 s\n          two\n          three\n          four\n',
    'file-change':
      '✎ src/a.ts (+2 −1)\n          ✎ new b.ts (+2)\n          ✎ deleted /else/c.ts\n          ✎ d.ts → e.ts (+0 −0)\n',
    plan: 'plan  1. look\n          2. leap\n',
    'web-search': 'web search  vitest 5 pools\n',
    'mcp-tool-call': 'tool docs/find  → failed in 120 ms: no such page\n',
    'tool-call': 'tool ask  → completed\n',
    'sub-agent': 'sub-agent spawnAgent (2 threads): Read the tests. ⏎ All of them.\n',
    image: 'image  /work/shot.png\n',
    compaction: 'codex compacted its context\n',
    unknown: 'codex did something this version does not know: timeTravel\n',
  }
  test.each(Object.values(sampleItems))('$kind', of => {
    expect(item(of)).toBe(expected[of.kind])
  })

  test('a question is told by an event of its own, and not once more as a call', () => {
    expect(item({ ...sampleItems['tool-call'], tool: 'ask_person' })).toBe('')
  })

  test('a call that has a command run names it', () => {
    const call = {
      ...sampleItems['tool-call'],
      tool: 'run_shell',
      status: 'failed',
      command: 'make\nmake test',
    } as const
    expect(item(call)).toBe('tool run_shell: make ⏎ make test  → failed\n')
  })

  test('a command that worked shows no output', () => {
    expect(command({ status: 'completed', exitCode: 0 })).toBe('$ npm test  → exit 0 in 4.2 s\n')
  })

  test('a command that was not run says so', () => {
    expect(command({ status: 'declined', exitCode: null, durationMs: null, output: '' })).toBe(
      '$ npm test  → declined\n',
    )
  })

  test.each([
    ['/usr/bin/zsh -lc "echo \\"\\$HOME\\""', 'echo "$HOME"'],
    ['bash -lc ls', 'ls'],
    ["bash -lc 'a' 'b'", "bash -lc 'a' 'b'"],
    ["/bin/bash -lc 'cat <<E\n  x\nE'", 'cat <<E ⏎ x ⏎ E'],
    ['node -e 1', 'node -e 1'],
  ])('the shell around a command is left out only if that loses nothing: %j', (typed, text) => {
    expect(command({ command: typed, exitCode: 0 })).toContain(`$ ${text}  → `)
  })

  test('a file change that was not applied says so', () => {
    const changes = sampleItems['file-change'].changes.slice(0, 1)
    expect(item({ ...sampleItems['file-change'], status: 'failed', changes })).toBe('✎ src/a.ts (+2 −1)  → failed\n')
  })

  test('a change whose diff was cut does not pass for a small one', () => {
    const change = {
      path: '/work/b.ts',
      change: 'add',
      movedTo: null,
      diff: 'one\ntwo\n[… 70000 more characters]',
    } as const
    expect(item({ ...sampleItems['file-change'], changes: [change] })).toBe('✎ new b.ts (+2, and more)\n')
  })

  test('of a thought the signs of its Markdown are left out', () => {
    expect(item({ ...sampleItems.reasoning, text: '*So* **the tests** of 2 * 3 *' })).toBe(
      'thinks  So the tests of 2 * 3 *\n',
    )
  })

  test('empty thoughts and messages are not shown', () => {
    expect(item({ ...sampleItems.reasoning, text: '' })).toBe('')
    expect(item({ ...sampleItems['agent-message'], text: ' \n' })).toBe('')
  })
})

describe('the end of a session in words', () => {
  test('every outcome, in its order', () => {
    expect(sampleOutcomes.map(outcome => / ended: (.+) {2}\(/.exec(end(outcome))?.[1])).toEqual([
      'done, gates pass',
      'done, not verified: no gates are configured',
      'limit reached: all rounds are used up',
      'limit reached: the time is used up',
      'limit reached: the tokens are used up',
      'needs a person: You are logged out.',
      'needs a person: The prompt was refused.',
      'stalled: no progress in 5 rounds, and nothing that codemachine tried helped',
      'stalled: the same claim was refused 5 times, and nothing that codemachine tried helped',
      'interrupted (Ctrl+C)',
      'stopped by a person',
      'skipped by a person',
    ])
  })

  test('a hint stands on a line of its own', () => {
    expect(end({ kind: 'needs-person', reason: 'You are logged out.', hint: { do: 'say', text: 'Log in.' } })).toMatch(
      /\)\n {10}Log in\.\n$/,
    )
    expect(end({ kind: 'stalled', rounds: 5, why: 'nothing-changed' })).toMatch(
      /\)\n {10}Find the cause with codemachine logs.+\n$/,
    )
  })
})

describe('what comes from outside is bounded', () => {
  test('a long message is cut, and says where the rest is', () => {
    const text = Array.from({ length: 100 }, (_, i) => `line ${i}`).join('\n')
    const lines = item({ ...sampleItems['agent-message'], text })
      .trimEnd()
      .split('\n')
    expect(lines).toHaveLength(41)
    expect(lines.at(-1)?.trim()).toBe('[… 60 more lines; all of it: codemachine logs 20261120_1 --json]')
  })

  test('a message without newlines is cut too', () => {
    const text = item({ ...sampleItems['agent-message'], text: 'x'.repeat(64_000) })
    expect(text.length).toBeLessThan(8300)
    expect(text).toContain('all of it: codemachine logs 20261120_1 --json')
  })

  test("codex's words for why a round failed are one line of at most 2,000 characters", () => {
    const cause = { class: 'crashed', message: `one\ntwo ${'x'.repeat(5000)}` } as const
    for (const event of [
      { ...sampleEvents.waiting, cause },
      { ...sampleEvents['round-ended'], outcome: cause },
    ]) {
      expect(line(event)).toMatch(/codex crashed: one ⏎ two x+….*\n$/)
      expect(line(event).length).toBeLessThan(2150)
    }
  })

  test('a long command is cut to 300 characters', () => {
    expect(command({ command: `echo ${'x'.repeat(5000)}`, exitCode: 0 })).toHaveLength(
      '$   → exit 0 in 4.2 s\n'.length + 300,
    )
  })
})

describe('colour', () => {
  const ESC = String.fromCharCode(0x1b)

  test('there is none unless it is asked for', () => {
    expect(Object.values(sampleEvents).map(line).join('')).not.toContain(ESC)
  })

  test('what is bad is red whatever the environment says', () => {
    const outcome = { kind: 'needs-person', reason: 'You are logged out.', hint: null } as const
    expect(shown({ ...sampleEvents['session-ended'], outcome }, true)).toContain(`${ESC}[31msession 20261120_1 ended`)
  })
})

/** Puts the text in the place of every text of an event; its type and kinds stay. */
function filled<T>(value: T, text: string): T {
  return JSON.parse(JSON.stringify(value), (key, old) =>
    typeof old === 'string' && !FIXED.has(key) && !VALUES.has(old) ? text : old,
  )
}
const FIXED = new Set(
  'type kind do status change class phase until limit why remedy when how severity verdict part door'.split(' '),
)
/** Values of an enumeration whose field elsewhere holds a text. */
const VALUES = new Set(['over', 'retry', 'stopped', 'caught'])

promise('B12', 'Text of agents steers no terminal')
test('nothing from outside steers the terminal or reorders a line, whatever event it comes in', () => {
  const events = [
    ...Object.values(sampleEvents),
    ...Object.values(moreSamples),
    ...sampleOutcomes.map(outcome => ({ ...sampleEvents['session-ended'], outcome })),
    ...Object.values(sampleItems).map(of => ({ type: 'item-completed', round: 1, item: of }) as const),
  ]
  fc.assert(
    fc.property(hostileText, fc.constantFrom(...events), (text, event) => {
      const written = shown(filled(event, text))
      expect(written).not.toMatch(/[^\n\P{Cc}]|[\u2028\u2029\p{Bidi_Control}]/u)
      expect(written.isWellFormed()).toBe(true)
      expect(written === '' || written.endsWith('\n')).toBe(true)
    }),
  )
})
