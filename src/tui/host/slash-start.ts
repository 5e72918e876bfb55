import { settingsOf } from '../../app/open-run.ts'
import { findUnfinished } from '../../app/resume.ts'
import { describeSpecification, goalOf, IS_IT_COMPLETE, specificationOf } from '../../app/start/dry-run.ts'
import { TEMPLATES, type TemplateName, templateNamed } from '../../app/start/template-names.ts'
import { chooseTemplate } from '../../app/start/templates.ts'
import { UserError } from '../../base/errors.ts'
import type { SlashPlace } from './slash.ts'

/**
 * `/start [build|goal] [--yes]`: builds what the specification asks for, once a person says that it is complete. Throws a
 * `UserError` if it cannot be built by.
 */
export async function startSlash({ context, records, person, start }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  if (start === null) return screen.notice('A session that is only watched is no place to start one', 'warning')
  const isBusy = () => screen.notice('A session is at work; /stop ends it, and then this can be started', 'warning')
  if (start.isRunning()) return isBusy()
  const words = rest.split(/\s+/).filter(word => word !== '')
  const [typed, more] = words.filter(word => !YES.includes(word))
  if (more !== undefined) {
    throw new UserError(`/start does not know what to do with "${more}"; type /start, or /start build or /start goal.`)
  }
  const { settings } = await settingsOf(context, records.directory, start.options())
  const template: TemplateName = typed === undefined ? settings.mode : templateNamed(typed)
  const specification = await specificationOf(records.directory, template)
  if (start.isRunning()) return isBusy()
  const text = goalOf(specification)
  if (words.some(word => YES.includes(word))) return start.begin({ text, template, asksPlan: false })
  const left = await findUnfinished(context, records, problem => screen.say(`codemachine: ${problem}`, 'warning'))
  if (start.isRunning()) return isBusy()
  const answer = await screen.choose({
    title: IS_IT_COMPLETE,
    body: [
      ...describeSpecification(specification),
      ...(left === null
        ? []
        : [`${left.what}: ${left.about}. This starts a new session; /resume goes on with that one.`]),
    ],
    options: [
      { id: 'start', label: 'Yes, start', hint: `${template}: ${descriptionOf(template)}` },
      { id: 'not-yet', label: 'Not yet', hint: 'nothing is started' },
    ],
  })
  if (answer.kind === 'chosen' && answer.id === 'start') return start.begin({ text, template, asksPlan: true })
  screen.say(`Nothing is started. Write what is missing into ${specification.path}, and type /start again.`)
}

const YES = ['--yes', '-y']

function descriptionOf(template: TemplateName): string {
  return TEMPLATES.find(({ name }) => name === template)?.description ?? ''
}

/** `/templates [name]`: what `/start` starts in this project. A `UserError` if it cannot be chosen. */
export async function templatesSlash({ context, records, person, start }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  const options = start?.options() ?? {}
  const typed = rest.trim().replace(/^(?:list|select)\b\s*/, '')
  const { settings } = await settingsOf(context, records.directory, options)
  const answer =
    typed === ''
      ? await screen.choose({
          title: 'What does /start start in this project?',
          options: TEMPLATES.map(({ name, description }) => ({
            id: name,
            label: name,
            hint: name === settings.mode ? `${description} (chosen)` : description,
          })),
        })
      : { kind: 'chosen' as const, id: typed }
  if (answer.kind !== 'chosen') return
  screen.say(await chooseTemplate(context, records.directory, templateNamed(answer.id), options))
  const { mode } = (await settingsOf(context, records.directory, options)).settings
  if (screen.model.facts !== null) screen.model.facts = { ...screen.model.facts, mode }
  screen.changed()
}
