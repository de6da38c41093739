"""What patients complain of and are asked for: complaints by organ system, each with its words and what it is a kind of.

A line of the table reads `name < kinds : words | words`. The words are beginnings of words unless they end in `$`.
A name belongs to everything it is a kind of: who asks for bleeding hears of a
nosebleed, who asks for a nosebleed does not hear of other bleeding, but hears that there is none at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_TABLE = r"""
# ---- the whole body
constitutional : constitutional symptom | systemic symptom | b symptom | general symptom | systemically unwell
fever < constitutional : fever | febrile | pyrexi | (?:high|elevated|raised|body|running a|normal|measured) temperature | temperature (?:at home|instab) | temperature$(?! (?:sens|intol)) | hot and shivery | burning up
chills < constitutional : chill | rigor$ | rigors | shiver
night sweats < constitutional sweating : night sweat | (?:sweat|drench|soak)\w* (?:\w+ )?(?:at|during the|through the) night | nocturnal sweat | wakes? up (?:soaked|drenched)
sweating < constitutional : sweat | diaphor | perspir | clammy
fatigue < constitutional : fatigue | tired | tires? easily | tire easily | exhaust | letharg | low energy | (?:lack|loss) of energy | malaise | unwell | sluggish | wiped out | run down | drowsy | drowsiness | sleepiness | somnolen | appears? ill$ | lack of stamina | worn out | ill appearing
weight < constitutional : weight$(?! bearing) | failure to thrive | (?:gained|lost|put on) (?:\w+ )?\d+ ?(?:kg|lb|pound|kilo) | clothes (?:\w+ )?(?:loose|tight)
weight loss < weight : (?:weight loss|loss of weight|los(?:t|e|ing) (?:\w+ ){0,2}weight) | (?:lost) (?:\w+ )?\d+ ?(?:kg|lb|pound|kilo) | failure to thrive | poor weight gain | clothes (?:\w+ )?loose
weight gain < weight : (?<!poor )(?:weight gain|gain(?:ed|ing)? (?:\w+ )?weight|put(?:ting)? on weight) | gained (?:\w+ )?\d+ ?(?:kg|lb|pound|kilo) | tightness of (?:rings|clothes)
appetite < constitutional : appetite | anorexi(?!a nervosa) | (?:poor|trouble|difficult\w*|diminish\w*|decreas\w*|reduc\w*|problems?)(?: with| in)? (?:feeding|eating|intake) | feeding (?:difficult|problem|issue|poorly) | (?:sleeping|sleep) and eating | not (?:eating|feeding|hungry) | eat(?:s|ing)? (?:less|well|normally|poorly|enough|more) | refus\w+ (?:to )?(?:eat|feed) | hunger$ | off (?:his|her|my|your) food | feeds? poorly | feeding well
craving < : crav | binge | hyperoral | hyperphag | overeat | sweet tooth | pica$
early satiety < gastrointestinal : early (?:satiety|full) | full(?:ness)? (?:in|after|of) (?:the |your )?(?:belly|abdom|stomach|eating|meals|a few) | feels? full (?:quick|early) | unusual fullness
thirst < constitutional : thirst | polydips | drink(?:s|ing)? a lot of (?:water|fluid)
dehydration < constitutional : dehydrat | dry mucous
temperature intolerance < constitutional : (?:heat|cold) (?:or (?:heat|cold) )?intoleran | intoleran\w* (?:to|of) (?:heat|cold) | sensitiv\w* to (?:heat|cold) | (?:feel\w*|always) (?:cold|hot)$
# ---- mind
psychiatric : (?:psychiatric|psychological|mental health|mental) symptom | psychotic symptom | mood symptom | psychosis
mood < psychiatric : mood$ | moods$ | mood (?:change|swing|lab) | emotional(?:ly)? (?:change|lab|state) | (?:blunted|flat) affect | how (?:are|is) your (?:spirits|mood)
low mood < mood : depress | sad$ | sadness | hopeless | feel\w* (?:down|low|blue|empty) | emptiness | tearful | low mood
guilt < mood : guilt | worthless | self blame | low self esteem
interest < mood : anhedon | (?:loss of|lost|no|lack of|dis) ?interest | disinterest | apath | no longer enjoy | pleasure in | loss of (?:motivation|empathy) | indifferen | lack of (?:motivation|empathy) | blunted affect
mania < mood : (?:elevated|irritable|euphoric|expansive) (?:or \w+ )?mood | euphori | grandios | racing thoughts | (?:less|decreased|reduced) need for sleep | mania$ | manic | pressured speech | spending spree | impulsiv
irritability < mood : irritab | short temper | easily (?:annoyed|angered) | mood swing
aggression < psychiatric behaviour : aggress | violen | yell | hostil | (?:break|broke|throw)\w* objects | outburst | anger
restlessness < psychiatric : restless | (?:sit|keep|stay|remain) still | fidget | pac(?:es|ing)$ | urge to move | on edge | akathis | agitat | jitter
anxiety < psychiatric : anxi | worr(?:y|ies|ied|ying) | panic | nervous(?! system) | phobia$ | obsess | apprehens
suicide < psychiatric : suicid | self harm | harm\w* (?:yourself|himself|herself|themselves|others) | (?:wish|want)\w* to die | death wish | kill (?:your|him|her)self | thoughts of death | better off dead
hallucination < psychiatric : hallucinat | hear\w*(?:/seen|/seeing)? voices | voices$ | voices (?:tell|been|last) | (?:see|seen|hear|heard|hear\w*/see\w*)(?:ing|n)? things | perceptual disturb | hear\w* things
delusion < psychiatric : delusion | paranoi | suspicious(?:ness)? | being (?:watched|followed|controlled) | plotting | persecut | false belief
disorganized < psychiatric : disorgani[sz] | incoheren | tangential | flight of ideas | unrelated subject
behaviour < psychiatric : behaviou?r | personality | disinhibit | inappropriate | social boundar | out of character | judg(?:e)?ment | unfitting
hygiene < behaviour : hygiene | unkempt | self care | dishevel | groom | bath(?:e|ing)$
withdrawal < psychiatric : reclusive | withdrawn | isolat(?:ed|ing|ion)$ | social withdrawal
compulsion < behaviour : compuls | repetitive (?:behav|routine|action) | ritual | hoard | rigid routine
concentration < cognition : concentrat | distractib | attention | focus(?:ing)?$(?! neuro) | trouble focusing
sleep < psychiatric : sleep(?! walk) | insomnia | awaken | wak(?:es|ing|en\w*)(?: up)?$ | nightmare | dream | dreams | wakefulness
stress < : stress$(?! incontinence| fracture) | stressful | stressor | life event | bereave | divorce | loss of (?:a |your |his |her )?(?:job|loved)| final exams | grief
# ---- nervous system
neurological : neuro(?:logic\w*)? (?:symptom|sign|change|deficit|problem|complaint|issue|disturb) | focal (?:neuro|deficit)
cognition < neurological : cognit | thinking (?:clearly|problem) | word finding | getting lost | planning | executive function | managing finances
memory < cognition : memor(?:y|ies) | forget | amnes | recollect | (?:not|can t|cannot|unable to) recall | recall them
confusion < cognition : confus | disorient | delirium | mental status | (?:is|are|been|less|more|and|not) alert | alert and | oriented | obtund | incoheren
consciousness < neurological : (?:loss of|lost|losing|level of) conscious | unconscious | black(?:ed|ing|s)? ?out | blackout | faint | syncop | pass(?:ed|ing|es)? out | unresponsive | nonresponsive | non responsive | collaps | near faint | loss of awareness | follow commands
orthostasis < : orthosta | blood pressure (?:drop|fall)s?(?: \w+)? (?:when|on|upon) standing | (?:dizz\w*|lighthead\w*|faint\w*)(?: \w+){0,2} (?:when|on|upon|with) (?:standing|getting up) | postural (?:dizz|hypo) | drops? in blood pressure
seizure < neurological : seiz | convuls | epilep | fits$ | jerking | staring | grimac | tonic clonic | lip smacking | febrile seiz | automatism | picking motion | hand gesture
aura < : aura$ | auras | warning sign | deja vu | strange smell | rising (?:stomach|epigastric) | before (?:the )?(?:onset|episode)s? | odd taste | muddy taste
headache < neurological pain : headache | head ache | migraine | cephal[ag]lg | head (?:pain|hurts) | pain in (?:the |your |my )?head$
vision < neurological eye complaint : vision | visual(?! halluc) | sight | eyesight
double vision < vision : double vision | seeing double | diplop
blurred vision < vision : blur
vision loss < vision : (?:vision|visual|sight) (?:loss|field) | loss of (?:\w+ )?(?:vision|sight) | blind | curtain (?:over|across) | peripheral vision | dark spots | tunnel vision
visual phenomena < vision : floater | flash(?:es|ing)?(?: of)? light | flashes$ | halo | zigzag | oscillops | scotoma
photophobia < light and sound : photophob | (?:sensitiv\w*|avers\w*|bother\w*) (?:to|by) (?:bright )?(?:light|noise/light) | (?:bright )?light sensitiv | light (?:bother|hurt)s? | bright light
light and sound < neurological : phonophob | sensitiv\w* to (?:noise|sound|noise/light) | noise sensitiv
dizziness < neurological : dizz | lighthead | light head | giddy | giddiness
vertigo < dizziness : vertigo | spinning | room (?:is )?(?:spin|turn)
weakness < neurological : weak(?!\s+cry) | (?:reduced|decreased|loss of|lack of|less) (?:muscle )?(?:strength|power) | paraly | paresis | plegia | climbing stairs | climb stairs | drop(?:ping|s) things | fatigab | rais\w+ (?:your|the|her|his) arms
face droop < weakness : fac(?:e|ial) (?:droop|weak|asymm|palsy|numb) | droop(?!\w* eyelid)
eyelid droop < weakness : ptosis | droop\w* (?:of )?(?:the |your )?(?:upper )?eyelid | eyelid\w* (?:droop|ptosis) | droopy eyelid
muscle tone < neurological : muscle tone | hypoton | floppy | decreased tone
numbness < neurological : numb | tingl | paresthes | pins and needles | sensory (?:loss|change|deficit|symptom) | (?:loss of|reduced|decreased|altered|abnormal|diminished|impaired) (?:\w+ )?sensation | sensation (?:loss|change) | (?:loss|lack) of feeling | hypoesthes | anesthesia over
gait < neurological : gait | walk | ambulat | shuffl | wheelchair | limp$ | limping | unstead | stagger | stumbl
balance < gait : balance | imbalance | off balance | instability when | unstable | loss of balance
coordination < neurological gait : coordinat | incoordinat | ataxi | clums | alternating movement | dysmetri | cerebellar | appearing drunk
falls < injury : falls$ | fallen$ | fell$ | fall$ | falling | tripped | slipped
tremor < involuntary movement : tremor | shaky | shakiness | trembl | hands? shak
involuntary movement < neurological : involuntary | abnormal movement | chore(?:a|ic|iform) | tics?$ | twitch | jerky | writhing | dance like | dystoni | myoclon | fasciculat | abnormal (?:\w+ )?movement | tongue movement
slowness < neurological : slow(?:ed|ness|ing)?(?: down)?(?: of)? (?:movement|down) | movements? (?:being |are |is |was |have |been )*slow | bradykin | psychomotor | reduced (?:facial expression|blink) | masked | facial expression
stiffness < musculoskeletal : stiff | rigid(?! routine)
neck stiffness < stiffness neurological : neck (?:stiff|rigid) | stiff\w* (?:of |in )?(?:the |your )?neck | meningism | nuchal
speech < neurological : speech | slur | articulat | aphasi | dysarthr | difficult\w* speaking | trouble (?:speaking|talking) | language (?:problem|output|difficult) | word finding | echo\w* (?:others )?words
smell < neurological : (?:loss of|sense of|change in|reduced|lost) (?:\w+ )?smell | anosmi | hyposmi
taste < neurological : taste | dysgeusi
development < : milestone | development(?:al)? (?:delay|history|mile|regress) | growth(?! plate)
fontanelle < neurological : fontanel
# ---- eyes, ears, nose, throat
eye complaint : eye (?:symptom|problem|complaint|issue|trouble)
eye redness < eye complaint : red eye | eyes? (?:is |are )?(?:red|bloodshot) | eye redness | conjunctivit | pink eye | bloodshot
eye discharge < eye complaint discharge : (?:eye|ocular) discharge | discharge from (?:the |your )?eye | watery eye | tearing$ | (?:eyes? )?water(?:s|ing) eye | crust\w* (?:of |on )?(?:the |your )?(?:eye|lid)
eye dryness < eye complaint dryness : (?:dry|gritty|scratchy) eye | eye dry | gritty
eye movement < eye complaint : eye movement | movements? of the eye | looking (?:down|up) | nystagm | eyes? (?:or head )?turning | gaze palsy
lens < eye complaint : cloudy lens | cataract | white pupil | leukocori
hearing < ear complaint : hearing (?:loss|change|problem|difficult|impair|aid|well) | (?:loss of|change in|changes in|trouble|difficult\w*|hard of|impaired|reduced) hearing | auditory (?:screen|test|disturb) | deaf | hear well
tinnitus < ear complaint : tinnitus | ringing | whoosh | buzzing in
ear complaint : ear (?:symptom|problem|infect|full|press|discharge|drain|block|pop) | full\w* in (?:the |your |either )?ear | otorrh | otitis
ear pain < ear complaint pain : ear (?:pain|ache) | earache | otalgi
nose < respiratory : (?:runny|stuffy|blocked|congested|running) nose | nose (?:is |been )?(?:runn|stuff|block) | nasal | rhinorr | rhinit | congestion$ | sneez | postnasal | sinus
cold < nose infection : cold symptom | (?:a|recent|common|head|any) cold$ | flu$ | influenza | flu like | upper respiratory | urti?$ | viral (?:illness|infection|syndrome|symptom) | cold or flu | colds$
nosebleed < bleeding : nosebleed | nose bleed | epistax | bleed\w* (?:from|of) (?:the |your )?nose
gum bleeding < bleeding : gum bleed | bleed\w*(?: \w+){0,3} gum | mucous membrane bleed | mucosal bleed | gums bleed
throat < respiratory : sore throat | throat (?:pain|sore|hurt|ach) | (?:pain\w*|scratchy) throat | pharyng
voice < respiratory : hoarse | voice (?:change|deepen|loss) | (?:soft\w*|weak|breathy|raspy|deeper) (?:voice|cry) | weak cry | voice is | dysphoni
mouth sores < skin lesion mouth : mouth (?:sore|ulcer|lesion) | oral (?:ulcer|sore|lesion|thrush) | (?:sores?|ulcers?) in (?:the |your )?mouth | aphth | canker
dry mouth < dryness mouth : dry mouth | mouth (?:is )?dry | xerostom
mouth : (?:tooth|dental|teeth|gum) (?:pain|problem|ache|decay) | toothache
swallowing < gastrointestinal : swallow | dysphag | odynophag | food (?:gets )?stuck
drooling < mouth : drool
choking < : chok | gag(?:s|ging)?$ | aspirat
lymph nodes < lump : lymph node | lymphaden | (?:swollen|enlarged) (?:lymph )?(?:node|gland) | glands? (?:are |is )?swollen | lymph
goiter < lump : goit | thyroid (?:swell|enlarg|lump|nodul)
# ---- lungs and heart
respiratory : respiratory (?:symptom|complaint|problem|issue|distress|tract symptom) | breathing (?:symptom|problem|issue|complaint)
cough < respiratory : cough
sputum < respiratory : sputum | phlegm | productive | mucus$(?! in)
hemoptysis < respiratory bleeding : h[ae]+moptys | cough\w* (?:up )?blood | blood\w*(?: \w+){0,3} (?:sputum|phlegm) | blood when cough
wheeze < respiratory : wheez | stridor | noisy breath | whistling | noisy when breath | stertor
breathlessness < respiratory cardiac : dyspn | short(?:ness)? of breath | breathless | (?:trouble|difficult\w*|hard|labou?red|rapid|fast|quick|problems?|heavy) (?:in |with |to )?breath\w* | breath\w* (?:rapid|fast|difficult|hard|quick|heav|problem) | tachypn | winded | out of breath | irregular respirations | respiratory rate | work of breathing | respirations
orthopnea < breathlessness : orthopn | nocturnal dyspn | (?:trouble|short\w* of breath|difficult\w*|problem)(?: \w+){0,3} (?:lying|lie|flat) | extra pillows | (?:wake|wakes|waking|awaken\w*)(?: \w+){0,3} (?:short of breath|gasping) | breath\w* (?:fast |hard )?when lying
apnea < respiratory : apn[eo] | stop(?:s|ped)? breathing | not breathing | pauses? in (?:\w+ )?breathing | breathing pauses? | snor
cyanosis < cardiac respiratory : cyano | blu(?:e|ish) (?:spell|lip|skin|disc|finger|nail|baby|colou?r|tinge) | turn\w* blue | blue$ | color change
cardiac : (?:cardiac|heart|cardiovascular) (?:symptom|complaint)
palpitations < cardiac : palpitat | (?:racing|pounding|irregular|fast|rapid|skipp\w*) heart | heart (?:rac|pound|flutter|skip|beat) | fast heartbeat | chest pounding | arrhythm | skipped beats
murmur < cardiac : murmur
pallor < : pallor | pale$ | pale (?:conj|skin)
clubbing < : clubb
claudication < : claudicat | leg pain (?:when|on|with) walking
# ---- belly
gastrointestinal : (?:gastrointestinal|gi|digestive|stomach|abdominal|bowel) (?:symptom|problem|issue|complaint|upset|trouble)s?$
nausea < gastrointestinal : nause | queasy | sick to (?:your|my|the) stomach | feel sick
vomiting < gastrointestinal : vomit | threw up | throw(?:ing|n|s)? up | emesis | spit(?:ting)? up | keep (?:fluids|food|anything) down | retch | puk(?:e|ing)
hematemesis < bleeding vomiting : h[ae]+mateme | vomit\w*(?: \w+){0,2} blood | blood\w* vomit | coffee ground
bilious < vomiting : bilious | (?:green|bile)(?: \w+)? vomit | vomit\w*(?: \w+)? bile
reflux < gastrointestinal : regurg | reflux | heartburn | acid (?:taste|reflux) | indigest | dyspeps
bowel habits < gastrointestinal : bowel(?! sound| disease) | stool | defecat | toilet habit | tenesm | incomplete emptying | poop | feces
diarrhea < bowel habits : diarrh | loose (?:\w+ )?(?:stool|bowel) | watery stool | bloody loose
constipation < bowel habits : constipat | hard stool | infrequent stool | pass(?:ing)? (?:gas|stool|flatus) | meconium | straining
blood in stool < bowel habits bleeding : melen | melaen | h[ae]+matochez | (?:blood|bloody|black|tarry)(?:[ ,]+\w+){0,4} (?:stool|bowel|feces|diarrh)\w* | (?:stools?|bowel movements?)[^,.]{0,20}(?:blood|black|tarry) | rectal bleed | blood (?:in|from|per) (?:the |your )?(?:rectum|anus)
stool colour < bowel habits : (?:pale|clay|white|light)(?: colou?red)? stool | greasy stool | steatorr | mucus in (?:the |your )?stool
bloating < gastrointestinal : bloat | disten | (?:abdom\w*|belly|stomach) (?:size|girth|swell|fullness) | (?:swell\w*|increas\w*|enlarg\w*|fullness)(?: \w+){0,3} (?:abdom\w*|belly|tummy|girth) | girth | ascit | fullness in the belly
gas < gastrointestinal : flatul | gassy | belch | burp | hiccup
jaundice < gastrointestinal : jaundi | yellow\w* (?:of |discolou?ration of )?(?:the |your )?(?:skin|eye|sclera) | icter | (?:skin|eyes?)(?: \w+){0,2} yellow
organ enlargement < : (?:enlarged|big|swollen) (?:liver|spleen) | (?:liver|spleen) (?:\w+ )?(?:big|enlarged) | hepatomeg | splenomeg
hemorrhoids < gastrointestinal : h[ae]+morrhoid | piles$
hernia < : hernia
cramps < pain : cramp | colic
# ---- urine and genitals
urinary : (?:urinary|bladder|voiding|urination|urinating) (?:symptom|problem|issue|complaint|change|habit|pattern|trouble|function)s? | (?:urinary|bladder)(?= (?:or|and) bowel) | (?:issue|problem|trouble|difficult\w*|change)s? (?:with|in) (?:\w+ )?(?:urinat|bladder|urine) | urine output
dysuria < urinary pain : dysuri | (?:burn|pain|discomfort|sting|hurt)\w*(?: \w+){0,2} (?:urinat|pass\w* urine|void|pee$|peeing)\w* | painful urinat | burns when (?:you|i) (?:pee|urin)
urinary frequency < urinary : (?:urinary|urine|urination|bladder) (?:frequency|urgency) | frequen\w+ urinat | urinat\w+ (?:more|frequent|often) | polyuri | nocturi | (?:need|urge) to (?:urinate|pee) | excessive urinat | high urine volume | urinate at night | frequency$ | urgency$ | frequent urination
incontinence < urinary : incontinen | leak\w*(?: of)?(?: urine)? | wet(?:ting)? (?:him|her|your|my|them)?(?:self|selves|the bed) | bladder control | enures
urinary retention < urinary : urinary retention | (?:difficult\w*|trouble|unable|hesitan\w*)(?: \w+){0,2} (?:urinat|void|pass\w* urine) | weak stream | hesitancy | catheter | dribbl | emptied? (?:your )?bladder
hematuria < urinary bleeding : h[ae]+maturi | blood\w*(?: \w+){0,3} urine | (?:red|dark|brown|cola|tea|pink)(?: colou?red)? urine | urine (?:that is |is |was )?(?:red|dark|brown|pink|bloody)
urine look < urinary : (?:foul|cloudy|frothy|foamy|bubbly|strong|smelly|concentrated)[^,.?]{0,25}urine | urine (?:is |was )?(?:foul|cloud|froth|foam)
kidney stones < urinary : kidney stone | renal (?:stone|calcul) | passing (?:a )?stone | gravel | nephrolith
urinary infection < infection urinary : urinary tract infection | utis?$ | bladder infection | kidney infection | cystitis
menses < reproductive : menst | menses | menarche | periods$(?! of) | period$(?! of) | lmp | amenorr | (?:menstrual )?cycles?$ | menopaus | hot flash
vaginal bleeding < bleeding reproductive : (?:vaginal|postcoital|intermenstrual|uterine|genital) (?:\w+ )?(?:bleed|spot) | spotting | bleed\w* (?:between|after) (?:periods|sex|intercourse)
heavy menses < menses bleeding : heavy (?:period|menst|bleed)\w*(?: bleed\w*)? | menorrhag | heavy menstrual bleeding
vaginal discharge < reproductive discharge : (?:vaginal|penile|urethral|genital) discharge | discharge from (?:the |your )?(?:vagina|penis) | (?:abnormal|foul|unusual) discharge
reproductive : (?:gyn\w+|vaginal|genital|reproductive|menstrual) (?:symptom|problem|complaint|issue)
vaginal dryness < reproductive dryness : vaginal dry | need lube | lubricat
pregnancy < reproductive : pregnan | gravid | gestation | miscarr | nullipar | obstetric | primigrav | trimester | abortion
fertility < reproductive : conceiv | fertil | get(?:ting)? pregnant | ovulat
sex pain < reproductive pain : dyspareun | (?:pain|discomfort|tension|tight|burn)[^,.?]{0,40}(?:sex\w*|intercourse|penetrat\w*|orgasm) | painful (?:sex|intercourse)
sexual function < reproductive : erecti | libido | sex(?:ual)? (?:drive|dysfunct|desire|interest) | impoten | ejaculat
genital sore < skin lesion reproductive : (?:genital|penile|vaginal|vulvar) (?:sore|ulcer|lesion|wart|rash|bump)
breast < : breast(?!fe) | nipple | galactorr | gyn[ae]+comast
testicle < reproductive : testic | scrot
# ---- bones, joints, muscles
musculoskeletal : musculoskeletal (?:symptom|complaint|problem)
joint complaint < musculoskeletal : (?:other |any )?joint (?:problem|symptom|issue|complaint|involve) | (?:problem|trouble)s? with (?:your |the |other )?joints | multiple joints | other joints
locking < musculoskeletal : lock(?:s|ing)?$ | catch(?:es|ing)?$ | click | popp(?:s|ing) | grind | crepit | mechanical block | snapping
instability < musculoskeletal : instab | giv(?:es|ing) way | buckl | giving out
range of motion < musculoskeletal : range of motion | limited (?:motion|movement) | (?:move|mov\w+|bend\w*|straighten|flex) (?:your|the|his|her) (?:\w+ )?(?:knee|hip|arm|shoulder|joint|elbow|neck|leg) | loss of (?:passive|active|motion) | extremes of motion
posture of limb < musculoskeletal : shorten | adduct | internally rotat | externally rotat | point(?:s|ing)? (?:in|out)ward | deform | malalign | flexed and
muscle cramps < pain musculoskeletal : muscle (?:cramp|spasm) | charley horse
function < : (?:daily|everyday) (?:living|activit|life|task) | activities of daily | (?:brush|comb)\w* (?:her|his|your|my|the)? ?(?:hair|teeth) | dress(?:ing|ed)?$ | job performance | (?:affect|interfer|impact|problems?|disrupt|deteriorat)\w*(?: \w+){0,4} (?:work|school|daily|life|sleep|social|function) | at work
# ---- skin
morphology : morpholog | look like | appearance of the (?:rash|skin|lesion)
skin complaint : (?:skin|dermatolog\w+) (?:symptom|change|problem|finding|complaint|issue)s?
rash < skin complaint : rash | eruption | exanthem | spots$
skin lesion < skin complaint : lesion | sore$ | sores$ | open sore
patch < rash morphology : patch | plaque | macule | ring (?:like|shaped) | circular | annular | well defined | well demarcated
bumps < rash skin lesion morphology : bump(?!y) | papul | pustul | pimple | wart | nodul(?!\w* goit) | acne | comedo | pits?$ | indentation | umbilicat
blisters < rash skin lesion morphology : blister | vesic | bull(?:a|ous)
hives < rash : hives | urticar | welt
ulcer < skin lesion morphology : ulcer(?!ative) | open sore | non ?healing | erosion
wound < skin lesion : wound(?! healing) | cut$ | cuts$ | laceration
scale < morphology skin complaint : scal(?:e|es|y|ing|ed)$ | (?<!scaly )flak | crust | dandruff | peel | cradle cap
redness < morphology skin complaint : red$ | redness | reddish | erythem | flushing | sunburn
pigment < morphology skin complaint : hypopigment | hyperpigment | depigment | discolou?r | pigment | (?:lighter|darker)(?:/darker)? (?:than|patch|area|skin|spot) | tan or
thickening < morphology skin complaint : thicken(?:ed|ing) | lichenif | indurat | sclero
skin dryness < skin complaint dryness : dry (?:sensitive )?(?:skin|patch) | skin (?:is )?dry | xerosis
dryness : dryness
itch < skin complaint : itch | prurit(?!us ani) | scratch
bruising < bleeding skin complaint : bruis | ecchym
petechiae < bruising : petech | purpur
hair < : hair (?:loss|thin|fall|growth|chang) | (?:loss|thinning|loss of some) (?:of )?(?:the |your )?(?:hair|eyebrow|eyelash) | alopec | bald | broken hair | eyelash | hirsut | facial hair | thinning of the eyebrow | excess hair
nails < : nail(?:s)? (?:change|pit|ridge|problem|discol) | (?:pits?|pitting|ridges?)(?:/\w+)? (?:in|on|of) (?:the |your )?(?:finger)?nails | fingernails?$ | clubbing of nails
lump < : lump | mass$ | masses$ | nodule | growth on | bony prominence | tumor | swollen area
swelling < : swell | swollen | edema | oedema | puff(?:y|iness) | ankles swell | fluid retention
warmth < : warm$ | warmth | hot to (?:the )?touch
tenderness < : tender | hurts? (?:when|if) (?:pressed|touched|you press) | rebound | guarding | when (?:i|you) press
discharge < : discharge | drain(?:age|ing) | pus$ | ooz
bleeding < : bleed | h[ae]+morrhag | blood loss | clotting problem
blood clots < : blood clot | thrombos | dvt
# ---- pain by itself; where it is comes from the places named
pain < : pain | ache | aching | hurt | sore$ | soreness | discomfort | \w+ache$ | sting(?:s|ing)$ | burning$ | chest (?:tight|pressure|heav) | (?:tight\w*|pressure|heav\w*) (?:in|on|over|across) (?:the |your |my )?chest | pelvic pressure | neuralg
# ---- what happened
injury : trauma | injur | accident | collision | crash | fractur | hit$ | blow to | struck
head injury < injury : head (?:injur|trauma) | (?:hit|injur\w+|struck|bang\w*) (?:\w+ )?head | concuss
bite < : insect bite | tick | bitten | (?:dog|cat|snake|animal|mosquito|insect|bug|spider) bite | bee sting | mosquito
sick contacts < exposure : sick contact | (?:around|exposed to|contact with|exposure to)(?: any)? ?(?:someone|anyone|people|anybody)?(?: who is| who was)? ?(?:sick|ill) | anyone (?:else )?(?:sick|ill) | close contact
exposure : expos(?:ed|ure)(?! to (?:sick|ill|sun))| toxin | chemical | asbestos | carbon monoxide | pesticide | mold$ | new (?:soap|detergent|lotion|product|food|cosmetic) | new substances | irritant | allergens?$ | outdoor exposure | hair/skin products
sun < : sun$ | sunlight | sun exposure | photosens
infection < : infect(?!ious mono) | recent illness | illness(?:es)? recent | (?:been|recently|get) (?:sick|ill)$ | pneumonia | gastroenter | recently ill
food < : undercooked | raw (?:meat|fish|egg|milk) | seafood | contaminated (?:food|water) | high salt | salty meal | spoiled
caffeine < : caffein | energy drink | coffee | garlic
vaccination : vaccin | immuni[sz] | (?:up to date on|her|his|your|all) shots | shots up
birth : born$ | birth$ | birth (?:hist|weight|compl) | deliver(?:y|ed)$ | preterm | prematur | full term | at term | prenatal | perinatal | nicu | neonat | born early | antenatal | intensive care unit | perinatal
apgar < : apgar
birth problem < birth : (?:birth|delivery|pregnancy|perinatal|antenatal|labor) (?:compl|asphyx|problem) | asphyxia | difficult delivery | (?:complications?|problems?) (?:during|at|with|of|in) (?:the )?(?:birth|delivery|pregnancy|labor) | placental | chorioamnion | complicated by
prenatal care < birth pregnancy : prenatal (?:care|vitamin|test|visit) | antenatal care
previous episode : (?:similar|previous|prior|past|earlier) (?:similar )?(?:episode|attack|problem|symptom|event|spell)s? | (?:happened|had (?:this|it|these|them|anything like this)|occurred|like this)(?: \w+){0,2} before | anything like this | first time
"""


_BOUNDARY = r"\b"
_DASHES = str.maketrans("-‑–—_", "     ")


@dataclass(frozen=True)
class _Complaint:
    name: str
    pattern: re.Pattern[str]


def _alternative(words: str) -> str:
    whole = words.strip().endswith("$")
    return rf"\b{words.strip().replace('$', _BOUNDARY)}" + ("" if whole else r"\w*")


def _read_table() -> tuple[tuple[_Complaint, ...], dict[str, frozenset[str]]]:
    complaints, parents = [], {}
    for line in _TABLE.strip().splitlines():
        if line.startswith("#"):
            continue
        head, _, listed = line.partition(" : ")
        name, _, kinds = (part.strip() for part in head.partition("<"))
        parents[name] = kinds
        alternatives = "|".join(_alternative(words) for words in re.split(r" \| ", listed))
        complaints.append(_Complaint(name, re.compile(alternatives, re.IGNORECASE)))
    return tuple(complaints), {name: _kinds(kinds, parents) for name, kinds in parents.items()}


def _kinds(listed: str, names: dict[str, str]) -> frozenset[str]:
    """The kinds a line lists: names of one or two words, the longest that the table knows."""
    found, left = set(), listed.split()
    while left:
        for length in (3, 2, 1):
            if " ".join(left[:length]) in names or length == 1:
                found.add(" ".join(left[:length]))
                left = left[length:]
                break
    return frozenset(found)


@lru_cache(maxsize=1)
def _ontology() -> tuple[tuple[_Complaint, ...], dict[str, frozenset[str]]]:
    complaints, parents = _read_table()
    closed: dict[str, frozenset[str]] = {}

    def close(name: str) -> frozenset[str]:
        if name not in closed:
            closed[name] = frozenset({name}).union(*(close(kind) for kind in parents.get(name, ())))
        return closed[name]

    return complaints, {complaint.name: close(complaint.name) for complaint in complaints}


@dataclass(frozen=True)
class Span:
    """A complaint named in a text, and where."""

    name: str
    start: int
    end: int


@lru_cache(maxsize=32768)
def spans(text: str) -> tuple[Span, ...]:
    """The complaints a text names, in order; one that is part of another's name is left out."""
    text = text.translate(_DASHES)
    found = [
        Span(complaint.name, match.start(), match.end())
        for complaint in _ontology()[0]
        for match in complaint.pattern.finditer(text)
        if match.end() > match.start()
    ]
    kept = [
        span
        for span in found
        if not any(
            other.start <= span.start and span.end <= other.end and other.end - other.start > span.end - span.start
            for other in found
        )
    ]
    return tuple(sorted(kept, key=lambda span: (span.start, span.end)))


@lru_cache(maxsize=32768)
def named(text: str) -> frozenset[str]:
    """The complaints a text names, by the most special name."""
    names = {span.name for span in spans(text)}
    return frozenset(name for name in names if not any(name != other and name in kinds(other) for other in names))


def kinds(name: str) -> frozenset[str]:
    """A complaint and everything it is a kind of."""
    return _ontology()[1].get(name, frozenset({name}))


@lru_cache(maxsize=32768)
def told(text: str) -> frozenset[str]:
    """Everything a statement tells of: the complaints it names and what they are kinds of."""
    return frozenset().union(*(kinds(span.name) for span in spans(text)))


@lru_cache(maxsize=32768)
def covered(name: frozenset[str]) -> frozenset[str]:
    """The complaints whose absence would answer a question for these: themselves and their kinds."""
    return frozenset().union(*(kinds(one) for one in name))
