import * as v from 'valibot'
import type { PartKind } from '../../core/state/state.ts'
import type { TemplateKind } from '../../core/template.ts'
import { firstWork, foldTeam, MOST_REPLANS } from './fold.ts'
import { teamView } from './view.ts'
import type { TeamOptions, TeamWork } from './work.ts'

const looks: PartKind = {
  words: 'plan',
  claims: false,
  free: false,
  countsForStall: false,
  delegates: false,
  keepsWords: 400,
  tellsAnswer: true,
}

const PARTS: TemplateKind['parts'] = {
  plan: looks,
  // A step may need no change; an undone one fails after two tries.
  work: { ...looks, words: 'work' },
  test: { ...looks, words: 'how to test' },
  review: { ...looks, words: 'review' },
}

/** More than a plan of 50 steps needs, each tried twice, with three repairs. */
const MOST_ROUNDS = 200

const teamOptions: v.GenericSchema<unknown, TeamOptions> = v.looseObject({
  mode: v.picklist(['all', 'plan', 'work', 'review']),
  step: v.nullable(v.string()),
  stepwise: v.boolean(),
  engines: v.exactOptional(
    v.object({
      planner: v.exactOptional(v.string()),
      worker: v.exactOptional(v.string()),
      reviewer: v.exactOptional(v.string()),
    }),
  ),
  repair: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(3)),
  accept: v.picklist(['ask', 'auto']),
  workspace: v.nullable(v.looseObject({ directory: v.string(), run: v.string(), logs: v.string() })),
  earlier: v.exactOptional(
    v.custom<NonNullable<TeamOptions['earlier']>>(value => typeof value === 'object' && value !== null),
  ),
})

/** A planner that splits a goal into steps, a worker that does them in order, and a reviewer. */
export const teamKind: TemplateKind<TeamWork> = {
  name: 'team',
  description: 'a new project: planned in steps, worked on, tested and reviewed, with secrets that no model sees',
  command: 'codemachine team "…"',
  defaultRounds: () => MOST_ROUNDS,
  parts: PARTS,
  hasPlan: false,
  memory: 'session',
  hasOwnCommand: true,
  replansItself: true,
  refusesReplan: ({ replans, options }) => {
    if (options.mode === 'work' || options.mode === 'review') return NO_PLAN
    return replans >= MOST_REPLANS ? ENOUGH : null
  },
  mendsClaims: true,
  usesShell: true,
  options: teamOptions,
  hasPlainState: true,
  first: created => firstWork(created, v.parse(teamOptions, created.options)),
  fold: foldTeam,
  view: teamView,
  open: async setup => await (await import('./effects.ts')).openTeam(setup),
}

const NO_PLAN = 'This session has no plan to change.'
const ENOUGH = `The plan has been changed ${MOST_REPLANS} times, the most that a session allows.`
