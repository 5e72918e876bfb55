import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { applyPatch, functionCall, reply, roundsScript, shell } from '../../../src/demo/model/reply.ts'
import { makePlace } from '../../support/place.ts'
import { says } from '../../support/rounds.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { openEngine, THREAD } from './open-engine.ts'

test.each([
  ['scripted', ['update_plan', 'web_search']],
  // No setting takes the patches of models that codex knows away.
  ['gpt-5.5', ['apply_patch', 'update_plan', 'web_search']],
])(
  'an agent of %s without a shell is offered nothing that runs or reads, and can neither read nor write',
  async (model, tools) => {
    const patch = '*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch'
    await using scripted = await startScriptedModel({
      script: roundsScript([
        [
          reply(shell('cat .env; touch new.txt')),
          reply(applyPatch(patch)),
          reply(functionCall('view_image', { path: '.env' })),
          says('Done.'),
        ],
      ]),
    })
    await using place = await makePlace(scripted.codexConfig('scripted'))
    await writeFile(join(place.directory, '.env'), 'HIDDEN\n')
    const { engine, play } = await openEngine({ directory: place.directory, env: place.env })
    try {
      const played = play(engine.prepare({ ...THREAD, model, noShell: true }))
      expect(await played.outcome).toEqual({ class: 'worked', message: null })
    } finally {
      await engine.close()
    }
    expect(scripted.requests[0]?.tools.toSorted()).toEqual(tools)
    expect(JSON.stringify(scripted.requests)).not.toContain('HIDDEN')
    expect(existsSync(join(place.directory, 'new.txt'))).toBe(false)
  },
)
