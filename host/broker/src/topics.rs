//! What can be done to topics: create, delete, alter, add partitions. One change at a time, each durable before its answer.
//!
//! The catalogue says what ought to be; the append threads own what is. A new topic stands in the catalogue before its
//! folders are made, as `creating`; a deleted one stands there as `deleting` until its folders are gone. A start removes
//! what it finds in either state.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;
use verbatim_wire::error::ErrorCode;

use crate::catalogue::{self, Snapshot, State, Topic};
use crate::errors::ApiError;
use crate::module_keys;
use crate::promotion;
use crate::properties::{self, PROPERTIES};
use crate::settings::{Settings, Values};
use crate::shared::{Folder, PartitionId, Shared};

/// A topic to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewTopic {
    /// Its name.
    pub(crate) name: String,
    /// Its partitions; -1 = one.
    pub(crate) partitions: i32,
    /// Its own properties.
    pub(crate) values: Values,
}

/// A change of a topic, and who asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    /// The topic's name.
    pub(crate) topic: &'a str,
    /// The request carries the mirror's mark.
    pub(crate) by_mirror: bool,
    /// Judge only, change nothing.
    pub(crate) validate_only: bool,
}

/// Makes a topic; with `validate_only` just tells what would be made.
pub(crate) async fn create(shared: &Shared, new: NewTopic, validate_only: bool) -> Result<Topic, ApiError> {
    let _one_at_a_time = shared.admin.lock().await;
    let topic = judged(shared, new)?;
    module_keys::check_values(&shared.judges, (&Values::new(), &topic.values)).await?;
    if validate_only {
        return Ok(topic);
    }
    // One whose creation or deletion failed in the middle makes room first; no change of it is under way.
    if let Some(left) = shared.catalogue.snapshot().topics.get(&topic.name) {
        remove(shared, left).await?;
    }
    put(shared, &Topic { state: State::Creating, ..topic.clone() })?;
    let made = Arc::new(topic);
    let opened = shared.open_partitions(&made, 0..made.partitions, Folder::New).await;
    if let Err(error) = opened.and_then(|()| put(shared, &made)) {
        // Nothing was promised yet: what was begun goes again.
        if let Err(left) = remove(shared, &made).await {
            tracing::error!(topic = made.name, error = %left, "a topic that was not created is not removed yet");
        }
        return Err(error);
    }
    tracing::info!(
        topic = made.name,
        partitions = made.partitions,
        exact = made.settings.exact,
        "topic created"
    );
    Ok(Arc::unwrap_or_clone(made))
}

/// Deletes the topic that `find` finds once no other change is under way, and its data.
pub(crate) async fn delete(
    shared: &Shared,
    find: impl FnOnce(&Snapshot) -> Result<Arc<Topic>, ApiError>,
) -> Result<Arc<Topic>, ApiError> {
    let _one_at_a_time = shared.admin.lock().await;
    let topic = find(&shared.catalogue.snapshot())?;
    remove(shared, &topic).await?;
    tracing::info!(topic = topic.name, "topic deleted");
    Ok(topic)
}

/// Changes a topic's properties: `edit` makes the new ones of the old ones.
pub(crate) async fn alter(
    shared: &Shared,
    change: Change<'_>,
    edit: impl FnOnce(&mut Values) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let _one_at_a_time = shared.admin.lock().await;
    let snapshot = shared.catalogue.snapshot();
    let topic = snapshot.topic(change.topic).ok_or_else(|| ApiError::unknown_topic(change.topic))?;
    let mut values = topic.values.clone();
    edit(&mut values)?;
    module_keys::check_change(shared.judges.as_ref(), (&topic.values, &values), change.by_mirror)?;
    let settings = Settings::read(&values)?;
    check_module(shared, &settings)?;
    check_change(topic, &settings, &values, change.by_mirror)?;
    module_keys::check_values(&shared.judges, (&topic.values, &values)).await?;
    let altered =
        Topic { settings, values, generation: topic.generation.saturating_add(1), ..Topic::clone(topic) };
    let promotes = topic.settings.exact || topic.state == State::Promoting;
    if promotes && !altered.settings.exact {
        return promotion::promote(shared, altered, change.validate_only).await;
    }
    if !change.validate_only {
        apply(shared, altered).await?;
    }
    Ok(())
}

/// Gives a topic more partitions, `count` in all.
pub(crate) async fn grow(shared: &Shared, change: Change<'_>, count: i32) -> Result<(), ApiError> {
    let _one_at_a_time = shared.admin.lock().await;
    let snapshot = shared.catalogue.snapshot();
    let topic = snapshot.topic(change.topic).ok_or_else(|| ApiError::unknown_topic(change.topic))?;
    if topic.settings.exact && !change.by_mirror {
        let text =
            format!("partitions of an exact topic are added by its mirror only, topic=`{}`", topic.name);
        return Err(ApiError::policy(text));
    }
    let total = partition_count(shared, count)?;
    let present = topic.partitions;
    if total <= present {
        let text = format!("the topic has {present} partitions already, expected more, count=`{count}`");
        return Err(ApiError::new(ErrorCode::InvalidPartitions, text));
    }
    if change.validate_only {
        return Ok(());
    }
    // Folders first: what the catalogue names is there.
    let grown = Topic { partitions: total, ..Topic::clone(topic) };
    let opened = shared.open_partitions(&Arc::new(grown.clone()), present..total, Folder::NewOrLeft).await;
    if let Err(error) = opened {
        remove_strays(shared, |name| (name == topic.name).then_some(topic)).await;
        return Err(error);
    }
    apply(shared, grown).await
}

/// Makes `topic` the one that counts: in the catalogue first, then for its append threads.
pub(crate) async fn apply(shared: &Shared, topic: Topic) -> Result<(), ApiError> {
    put(shared, &topic)?;
    let topic = Arc::new(topic);
    for index in 0..topic.partitions {
        let id = PartitionId { topic: topic.id, index };
        let topic = Arc::clone(&topic);
        shared.appender(id).call(move |worker| worker.configure(id, &topic)).await?;
    }
    Ok(())
}

/// Removes a topic whose deletion is decided, also one that a crash left half removed.
pub(crate) async fn remove(shared: &Shared, topic: &Topic) -> Result<(), ApiError> {
    put(shared, &Topic { state: State::Deleting, ..topic.clone() })?;
    shared.remove_partitions(topic, 0..topic.partitions).await?;
    let removed = Arc::new(topic.clone());
    remove_strays(shared, |name| (name == topic.name).then_some(&removed)).await;
    shared.catalogue.update(|draft| {
        draft.remove(&topic.name);
        Ok(())
    })?;
    shared.groups.forget_topic(topic.id).await;
    Ok(())
}

/// Removes partitions that their topics, of which this is one or all, do not have: they are left of a growth that did not
/// come to its end. What cannot be removed is left to the next start.
pub(crate) async fn remove_strays<'a>(shared: &Shared, topics: impl Fn(&str) -> Option<&'a Arc<Topic>>) {
    let there = shared.folder.partitions().unwrap_or_else(|error| {
        tracing::error!(%error, "partitions that were never served are not looked for");
        Vec::new()
    });
    let mut strays = BTreeMap::<String, Vec<u32>>::new();
    for (name, index) in there {
        if topics(&name).is_some_and(|topic| index >= topic.partitions) {
            strays.entry(name).or_default().push(index);
        }
    }
    for (name, indices) in strays {
        let Some(topic) = topics(&name) else { continue };
        tracing::info!(topic = name, partitions = ?indices, "partitions that were never served are removed");
        if let Err(error) = shared.remove_partitions(topic, indices).await {
            tracing::error!(topic = name, %error, "what is left of them is left to the next start");
        }
    }
}

/// Writes the topic into the catalogue.
pub(crate) fn put(shared: &Shared, topic: &Topic) -> Result<(), ApiError> {
    shared.catalogue.update(|draft| {
        draft.put(topic.clone());
        Ok(())
    })
}

fn judged(shared: &Shared, new: NewTopic) -> Result<Topic, ApiError> {
    catalogue::check_name(&new.name)?;
    if shared.catalogue.snapshot().topic(&new.name).is_some() {
        let text = format!("a topic of this name exists, topic=`{}`", new.name);
        return Err(ApiError::new(ErrorCode::TopicAlreadyExists, text));
    }
    let partitions = partition_count(shared, if new.partitions == -1 { 1 } else { new.partitions })?;
    module_keys::check_change(shared.judges.as_ref(), (&Values::new(), &new.values), false)?;
    let settings = Settings::read(&new.values)?;
    check_module(shared, &settings)?;
    Ok(Topic {
        name: new.name,
        id: Uuid::new_v4(),
        partitions,
        values: new.values,
        settings,
        generation: 0,
        state: State::Live,
    })
}

fn partition_count(shared: &Shared, asked: i32) -> Result<u32, ApiError> {
    let most = shared.config.limits.partitions_max;
    u32::try_from(asked).ok().filter(|count| (1..=most).contains(count)).ok_or_else(|| {
        let text = format!("a topic must have 1 to {most} partitions, partitions=`{asked}`");
        ApiError::new(ErrorCode::InvalidPartitions, text)
    })
}

fn check_module(shared: &Shared, settings: &Settings) -> Result<(), ApiError> {
    let (name, property) = (&settings.module, properties::MODULE);
    let text = if !shared.judges.knows(name) {
        format!("topic property {property} must name a module that this host holds, value=`{name}`")
    } else if !shared.judges.judges(name, settings.exact) {
        let (mode, exact) = (if settings.exact { "exact" } else { "normal" }, properties::EXACT);
        format!(
            "topic property {property} must name a module that judges {mode} topics, value=`{name}`, {exact}=`{}`",
            settings.exact
        )
    } else {
        return Ok(());
    };
    Err(ApiError::config(text))
}

fn check_change(
    topic: &Topic,
    settings: &Settings,
    values: &Values,
    by_mirror: bool,
) -> Result<(), ApiError> {
    let was_exact = topic.settings.exact;
    if !was_exact && settings.exact {
        let text = format!("topic property {} can be set at creation only", properties::EXACT);
        return Err(ApiError::config(text));
    }
    for property in PROPERTIES {
        if crate::settings::text(&topic.values, property.name) == crate::settings::text(values, property.name)
        {
            continue;
        }
        match property.change {
            properties::Change::AtCreation => {
                let text = format!("topic property {} can be set at creation only", property.name);
                return Err(ApiError::config(text));
            }
            properties::Change::ShapesData if was_exact && settings.exact && !by_mirror => {
                let text = format!(
                    "topic property {} of an exact topic is changed by its mirror only, topic=`{}`",
                    property.name, topic.name
                );
                return Err(ApiError::policy(text));
            }
            _ => {}
        }
    }
    Ok(())
}
