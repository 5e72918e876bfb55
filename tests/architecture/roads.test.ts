import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The most files that a behaviour may pass. */
const MOST_FILES = 10

/**
 * The spine of eleven behaviours: the files that decide each or pass it on, in order. Words, shapes and helpers are left out. The
 * name is declared there: a function, method, type, field or event. Two processes meet at the file that both import, such as
 * `session/records/control.ts`, or at an address that both name.
 */
const ROADS: Record<string, readonly (readonly [file: string, name: string])[]> = {
  'a claim is refused': [
    ['session/session.ts', '#prove'],
    ['session/round.ts', '#judge'],
    ['session/proof/claim.ts', 'judgeClaim'],
    ['core/rules/done-rule.ts', 'judgeDone'],
    ['core/state/state.ts', 'notices'],
    ['core/state/fold-claim.ts', 'done-refused'],
    ['core/rules/notices.ts', 'Notice'],
    ['session/round-input.ts', 'withNotices'],
    ['modes/goal/effects.ts', 'openGoal'],
  ],
  'a claim is proved by its gates': [
    ['session/session.ts', '#prove'],
    ['session/proof/claim.ts', 'prove'],
    ['core/rules/done-rule.ts', 'nextProof'],
    ['session/proof/proof.ts', 'Proof'],
    ['project/proof/proof-environment.ts', 'proofEnvironment'],
    ['session/proof/run-gate.ts', 'runGate'],
    ['core/state/fold-claim.ts', 'gate-ended'],
    ['core/events/outcome.ts', 'blocksDone'],
  ],
  'a usage limit is waited out, also over a restart': [
    ['engines/codex/round.ts', 'CodexRound'],
    ['engines/codex/classify.ts', 'classifyTurnError'],
    ['core/events/outcome.ts', 'RoundOutcome'],
    ['core/rules/after-round.ts', 'afterRound'],
    ['session/waits.ts', 'waitUntil'],
    ['core/state/state.ts', 'waiting'],
    ['core/state/fold.ts', 'waiting'],
  ],
  'a person steers from another terminal': [
    ['doors/cli/commands/ask.ts', 'askRunning'],
    ['project/open-project.ts', 'ask'],
    ['project/commands/commands.ts', 'askRun'],
    ['session/records/control.ts', 'sendCommand'],
    ['project/sessions.ts', '#runToEnd'],
    ['project/commands/steer.ts', 'steer'],
    ['session/session.ts', 'steer'],
    ['session/round.ts', 'steer'],
    ['core/engine.ts', 'steer'],
    ['engines/codex/round.ts', 'steer'],
  ],
  'a queued prompt becomes the next session': [
    ['doors/cli/commands/run.ts', 'run'],
    ['project/open-project.ts', 'runQueue'],
    ['project/run-queue.ts', 'runQueue'],
    ['session/records/queue.ts', 'openQueue'],
    ['project/sessions.ts', 'Sessions'],
    ['session/session.ts', 'Session'],
  ],
  'the plan of a change is refined': [
    ['doors/cli/change/plan.ts', 'plan'],
    ['doors/cli/commands/ask.ts', 'openRunning'],
    ['project/open-project.ts', 'ask'],
    ['project/commands/commands.ts', 'handleCommand'],
    ['project/sessions.ts', '#runToEnd'],
    ['session/session.ts', 'decide'],
    ['core/rules/decision.ts', 'Decision'],
    ['modes/change/plan-decision.ts', 'planDecision'],
    ['modes/change/states/reviewing-plan.ts', 'refinement'],
    ['modes/change/states/planning.ts', 'planRound'],
  ],
  'a secret is used that no model sees': [
    ['doors/cli/commands/secret.ts', 'secretSet'],
    ['project/secrets/person-secrets.ts', 'setSecret'],
    ['secrets/store.ts', 'openSecrets'],
    ['project/secrets/session-secrets.ts', 'openSessionSecrets'],
    ['core/shapes/secrets.ts', 'SessionSecrets'],
    ['session/shell/session-shell.ts', 'SessionShell'],
    ['session/round.ts', 'Rounds'],
  ],
  'one tap on the phone answers': [
    ['doors/page/page/now.tsx', 'NowPage'],
    ['doors/page/page/inbox.tsx', '/answer'],
    ['doors/page/page/client.ts', 'post'],
    ['doors/page/session-api.ts', '/answer'],
    ['project/watch/questions.ts', 'giveAnswer'],
    ['project/commands/commands.ts', 'askRun'],
    ['session/records/control.ts', 'sendCommand'],
  ],
  'the session of a lost worker is taken over': [
    ['fleet/worker/worker.ts', 'runWorker'],
    ['fleet/queue.ts', 'supervise'],
    ['fleet/store.ts', 'take'],
    ['fleet/worker/session.ts', '#takeOver'],
    ['fleet/worker/clones.ts', 'Clones'],
    ['fleet/worker/carry.ts', 'settleSession'],
    ['fleet/worker/runner.ts', 'startRunner'],
  ],
  'a killed session is resumed': [
    ['doors/cli/commands/run.ts', 'resume'],
    ['project/resume.ts', 'findUnfinished'],
    ['session/records/journal.ts', 'foldJournal'],
    ['core/state/fold.ts', 'fold'],
    ['project/open-run.ts', 'openRun'],
    ['project/after-kill.ts', 'repairAfterKill'],
    ['project/sessions.ts', 'resume'],
    ['session/session.ts', '#begin'],
  ],
  'a workflow is replayed': [
    ['doors/cli/flow/run.ts', 'run'],
    ['modes/flow/start/mock-run.ts', 'runMock'],
    ['modes/flow/file/mock-script.ts', 'MockScript'],
    ['modes/flow/replay.ts', 'nextOfReplay'],
    ['modes/flow/effects.ts', 'openFlow'],
    ['engines/replay/replay-engine.ts', 'ReplayEngine'],
    ['engines/codex/recorded-round.ts', 'RecordedRound'],
    ['engines/codex/round-feed.ts', 'RoundFeed'],
  ],
}

const imports = new Map(
  globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).map(path => {
    const text = readFileSync(join(ROOT, path), 'utf8')
    const { module } = parseSync(path, text)
    const requests = [
      ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
      ...module.dynamicImports.map(({ moduleRequest: { start, end } }) => text.slice(start + 1, end - 1)),
    ]
    const to = requests.flatMap(each => (each.startsWith('.') ? [relative('src', join(dirname(path), each))] : []))
    return [relative('src', path), { text, to: new Set(to) }] as const
  }),
)

/** Whether a text declares a function, class, type, constant, method, field or event of that name, or has that address. */
function declares(text: string, name: string): boolean {
  if (name.startsWith('/')) return text.includes(name)
  if (name.includes('-')) return text.includes(`'${name}':`)
  const own = `(?:(?:function\\*?|class|interface|type|const) |^ +(?:(?:readonly|async|static) )*\\*?)${name}`
  return new RegExp(`${own}(?:\\b|\\?)(?! = \\w+,)`, 'm').test(text)
}

test.each(Object.entries(ROADS))(
  '%s: a reader passes ten files at the most, each found by the imports of one before',
  (_, road) => {
    expect(road.length).toBeLessThanOrEqual(MOST_FILES)
    const lost = road.flatMap(([file, name], at) => {
      const found = imports.get(file)
      if (found === undefined) return [`${file} is not there`]
      if (!declares(found.text, name)) return [`${file} does not declare ${name}`]
      const before = road.slice(0, at)
      const isNear = at === 0 || before.some(([each]) => found.to.has(each) || imports.get(each)?.to.has(file))
      if (name.startsWith('/') && before.some(([, address]) => address === name)) return []
      return isNear ? [] : [`${file} neither imports one of those before it, nor is imported by one`]
    })
    expect(lost).toEqual([])
  },
)
