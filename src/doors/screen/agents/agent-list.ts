import { shortNumber } from '../../../tell/words/numbers.ts'
import type { Stage } from '../view/full-view.ts'
import { type ListColumn, ListView } from '../view/list.ts'
import { type AgentRow, agentRows, STANDINGS } from './agent-rows.ts'
import { type AgentsPlace, AgentView, followPane } from './agent-view.ts'

const COLUMNS: readonly ListColumn<AgentRow>[] = [
  { head: 'Agent', cell: ({ name }) => name, most: 24, role: () => 'strong' },
  { head: 'Tasks', cell: ({ tasks }) => tasks, most: 14, from: 36, role: () => 'accent' },
  {
    head: 'Does',
    cell: ({ activity }) => activity,
    role: ({ standing }) => (standing === 'at-work' || standing === 'main' ? 'plain' : STANDINGS[standing].role),
  },
  { head: 'Time', cell: ({ time }) => time, most: 9, align: 'right', from: 50 },
  {
    head: 'Tokens',
    cell: ({ tokens }) => (tokens === null ? '–' : shortNumber(tokens)),
    most: 8,
    align: 'right',
    from: 60,
    role: () => 'dim',
  },
]

/** Whether an agent can be told something; `instance`: null of the round's own, undefined: none is meant. */
function isReached({ state }: AgentsPlace['pane'], instance: string | null | undefined): boolean {
  if (instance === undefined || state === null || state.ended !== null) return false
  return instance === null || state.agents.some(agent => agent.instance === instance)
}

/** The agents of the session that is shown; Enter looks into one of them. Fills the terminal. */
export function agentList(place: AgentsPlace): ListView<AgentRow> {
  const { pane, theme, keymap, clock } = place
  const rows = () => (pane.state === null ? [] : agentRows(pane.state, pane.items, clock.now()))
  const into = (row: AgentRow, stage: Stage) => {
    const view = new AgentView(place, row)
    stage.open(view)
    return view
  }
  return new ListView<AgentRow>({
    title: () => {
      const atWork = pane.state?.agents.length ?? 0
      return atWork === 0 ? 'Agents' : `Agents, ${atWork} at work`
    },
    noun: 'agent',
    theme,
    keymap,
    rows,
    columns: COLUMNS,
    textOf: ({ name, tasks, activity, request }) => [name, tasks, activity, request].join(' '),
    idOf: ({ instance }) => instance ?? '',
    empty: 'No session to show.',
    open: (chosen, stage) => void into(chosen, stage),
    actions: {
      tell_here: (chosen, stage) => {
        if (chosen !== null) into(chosen, stage).tell()
        return null
      },
      stop_here: (chosen, stage) => {
        if (chosen !== null) into(chosen, stage).stop()
        return null
      },
      copy_here: (chosen, stage) => {
        if (chosen === null) return null
        const name = chosen.instance ?? chosen.name
        return stage.copy(name) ? `copied: ${name}` : null
      },
    },
    search: 'asked',
    hints: chosen => [
      `${keymap.label('open')} open`,
      `${keymap.label('close')} back`,
      ...(isReached(pane, chosen?.instance) ? [`${keymap.label('tell_here')} tell it`] : []),
      ...(isReached(pane, chosen?.instance) && chosen?.instance !== null
        ? [`${keymap.label('stop_here')} stop it`]
        : []),
      `${keymap.label('find')} find`,
      `${keymap.label('copy_here')} copy its name`,
    ],
    follow: changed => followPane(place, changed),
  })
}
