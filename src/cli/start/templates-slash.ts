import { settingsOf } from '../open-run.ts'
import type { SlashPlace } from '../screen/slash-place.ts'
import { chooseTemplate } from './choose-template.ts'
import { TEMPLATES, templateNamed } from './templates.ts'

/** `/templates [name]`: what `/start` starts in this project. A `UserError` if it cannot be chosen. */
export async function templatesSlash({ context, records, person, start }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  const flags = start?.flags() ?? {}
  const typed = rest.trim().replace(/^(?:list|select)\b\s*/, '')
  const { settings } = await settingsOf(context, records.directory, flags)
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
  screen.say(await chooseTemplate(context, records.directory, templateNamed(answer.id), flags))
  const { mode } = (await settingsOf(context, records.directory, flags)).settings
  if (screen.model.facts !== null) screen.model.facts = { ...screen.model.facts, mode }
  screen.changed()
}
